/** Leaf in Hutool. */
package io.github.leafid.hutool;
