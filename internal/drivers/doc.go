// Package drivers turns store URLs into stores. It holds the one table of drivers;
// no other package but a driver itself knows a database.
//
//	sqlite:PATH                                   a file on this machine
//	mysql://user:password@host:3306/db?tls=true   MySQL or MariaDB
//	mysql://user:password@unix(/path/socket)/db
//
// The path of sqlite: is taken as it stands, relative or absolute. User names and
// passwords are percent-encoded; a character that is not reserved in URLs, and "@",
// may stand for itself. Parameters of mysql: are tls (true, false, skip-verify,
// preferred), timeout (to connect), readTimeout and writeTimeout (durations such as
// 5s, their default). No error holds a password.
package drivers
