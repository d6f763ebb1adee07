// Package sim runs the code of the server in virtual time: nodes with segment.Set, or with
// snowflake.Node over worker.Keeper, on driver/kv over a database in memory. A seed gives the
// schedule of faults in networks, processes, disks and clocks. The kinds are tags, relays
// behind servers, lifts (of counters that went back), leases, losses (leases on a registry that loses
// writes), lapses (of such leases by clocks that differ), and pools (leases for other programs).
//
//	go test ./lab/sim -run Schedules -schedules 100000     more of them
//	go test ./lab/sim -run Schedules -kind leases -seed 17 one, with a log of its events
//
// The seed decides on every step, on every client's calls and on the fault of each call of
// the database. The product's own random numbers, such as those of its back-off, differ from
// run to run: replay a schedule several times.
//
// With LEAF_LAB set, a process for each processor plays each kind for 50 seconds, again and again until
// LEAF_FOR, such as 1h, is over.
//
// TestSaboteurs builds these tests with faults in the product's code (package saboteurs). It breaks
// one rule after the other and shows that the simulator finds the consequence. For each of them,
// testdata/saboteurs keeps a schedule, and the test fails if that does not find it any more. With
// LEAF_LAB set, schedules are also tried from the first one on. A finding of [TestSchedules] becomes
// a saboteur, with the mended fault and the failed schedule. After a change of the simulator this
// command, in folder e2e, writes the schedules again; -run Saboteurs/NAME does so for one:
//
//	go test -tags leafsabotage -overlay "$(go run ./lab/saboteurs/overlay)" ./lab/sim -run Saboteurs -record
package sim
