// Package bench measures this module beside what it replaces and beside the floor
// of the machine, in one process and one run, so that the ratios mean something. It
// is a module of its own because its peers are no requirement of the product.
//
// `make bench` runs package lab, which measures this module and its peers in turns, runs
// the benchmarks here that start servers, and writes the tables of docs/performance.md.
package bench
