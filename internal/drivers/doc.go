// Package drivers turns URLs into backends: stores of tags, registries of worker IDs, or both. Its
// table has one row for each scheme of a URL. The file of a driver has the grammar of its URLs:
// hosts, parameters and errors. No package but this one knows a database.
//
// A driver reads all parameters by the methods of target, which keep the first fault, sets the key,
// the hosts and the traits, and opens its database. [Open] reports the fault, and parameters that the
// driver has not read.
//
// User names and passwords are percent-encoded; unreserved characters and "@" need no encoding. An "@"
// in a parameter does.
// docs/stores.md lists the parameters. Errors never contain a password.
//
// Every URL of a registry, except sqlite:, has two parameters. claim_delay is the wait of a claim
// on a registry that may lose writes. reclaim=machine, for static: and layout=leaf, promises that
// no other machine has a copy of the data directory. In a URL of a store, store_id is the required
// identity of the store.
package drivers
