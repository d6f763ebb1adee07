// Package bench holds what is measured, and what it is measured beside: the sources of IDs
// of this module, the libraries that it replaces, the floor of the machine, and a process of
// the server. It is a module of its own because its peers are no requirement of the product.
//
// `make bench` runs package lab, which measures all in turns and writes the tables of
// docs/performance.md. The benchmarks here are for `make benchstat`, which compares the
// working tree with another commit.
package bench
