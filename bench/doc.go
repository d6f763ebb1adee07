// Package bench holds the subjects of measurements and their peers: this module's sources of IDs,
// the libraries that they replace, the floor of the machine, and a server process. It is a separate
// module so that the product does not require its peers.
//
// `make bench` runs package lab, which measures all in turns and writes the tables of
// docs/performance-tables.md. The benchmarks here are for `make benchstat`, which compares the
// working tree with another commit.
package bench
