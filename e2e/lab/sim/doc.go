// Package sim runs the code of the server in virtual time: nodes with segment.Set, or with
// snowflake.Node over worker.Keeper, on driver/kv over a database in memory. Networks,
// processes, disks and clocks fail by a schedule that a seed gives. There are four kinds: tags,
// relays behind servers, leases, and losses (leases on a registry that loses writes).
//
//	go test ./lab/sim -run Schedules -schedules 100000     more of them
//	go test ./lab/sim -run Schedules -kind leases -seed 17 one, with what happened in it
//
// The seed decides on every step, on every client's calls and on the fault of each call of
// the database. What the product draws at random itself, such as its back-off, differs from
// run to run: a schedule is replayed some times over.
//
// Seeds that have failed are kept in testdata/seeds and run first; a new one gets a line there. A
// seed means the same only as long as the simulator stays as it is, so what one has found gets a
// test of its own.
//
// TestSaboteurs builds these tests with faults in the product's code (package saboteurs). It breaks
// one rule after the other and shows that the simulator finds what follows. The schedules in
// testdata/saboteurs are known to notice and run first. With LEAF_LAB set, schedules are tried from
// the first one on. After a change of the simulator this writes the known ones again, in folder
// e2e:
//
//	go test -tags leafsabotage -overlay "$(go run ./lab/saboteurs/overlay)" ./lab/sim -run Saboteurs -record
package sim
