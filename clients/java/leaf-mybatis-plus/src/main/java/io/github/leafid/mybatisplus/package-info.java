/** Leaf in MyBatis-Plus. */
package io.github.leafid.mybatisplus;
