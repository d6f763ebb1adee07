/** Leaf in ShardingSphere. */
package io.github.leafid.shardingsphere;
