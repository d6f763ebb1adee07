// Package bench measures this module beside what it replaces and beside the floor
// of the machine, in one process and one run, so that the ratios mean something:
// `make bench`. It is a module of its own because its peers are no requirement of
// the product.
package bench
