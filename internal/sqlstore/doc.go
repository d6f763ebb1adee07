// Package sqlstore reads and writes Leaf's tables in SQL databases. A driver tells it by a
// [Dialect] how its database spells the statements, and gives it sessions. It knows no client
// library.
package sqlstore
