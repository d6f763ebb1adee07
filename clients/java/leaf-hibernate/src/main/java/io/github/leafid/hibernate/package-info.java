/** Leaf in Hibernate. */
package io.github.leafid.hibernate;
