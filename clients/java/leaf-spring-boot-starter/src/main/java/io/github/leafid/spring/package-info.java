/** Leaf in Spring Boot. */
package io.github.leafid.spring;
