/** Unique IDs and leased worker IDs from Leaf servers. */
package io.github.leafid;
