// Package sqlstore is what the stores and registries in SQL databases share: arguments
// are checked, rows are read and changes are applied here; a driver adds how its database
// is spoken to. It knows no client library.
package sqlstore
