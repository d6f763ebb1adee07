package main

import "slices"

// rowGoals are the goals of single rows with figures in the tables of their parts. They appear
// there, next to the row.
var rowGoals = slices.Concat(wireGoals, floodGoals(), scaleGoals, pgoGoals(), fleetGoals, storeGoals(), driverGoals(), strictGoals())

const sharedCores = "the generator of the load takes the larger part of the two cores"

var wireGoals = []goal{
	{part: "http", place: place{begins: "Leaf, `/api/segment/get/{key}` | open loop, half", column: "p99, ms", over: "nginx, `return 200` | open loop, half"},
		what: "p99 to nginx", limit: 2, unit: "×", missed: sharedCores, evidence: "its column"},
	{part: "http", place: place{begins: "Leaf, `/v1/ids/segment/{key}` | closed", column: wireCPU, over: "nginx, `return 200` | closed"},
		what: "CPU to nginx", limit: 1.3, unit: "×", missed: "nearly all of it is the system calls", evidence: "a profile"},
	{part: "resp", place: place{begins: "Leaf, -P 1 | open loop, half", column: "p99, ms", over: "Redis, -P 1 | open loop, half"},
		what: "p99 to Redis", limit: 2, unit: "×", missed: sharedCores, evidence: "its column"},
	{part: "resp", place: place{begins: "Leaf, -P 1 | open loop, 80", column: "p99, ms", over: "Redis, -P 1 | open loop, 80"},
		what: "p99 to Redis", limit: 2, unit: "×", missed: sharedCores, evidence: "its column"},
	{part: "grpc", place: place{begins: "Leaf, `Next`, one connection | open loop, half", column: "p99, ms", over: "grpc-go, bare, one connection | open loop, half"},
		what: "p99 to the bare server", limit: 2, unit: "×", missed: sharedCores, evidence: "its column"},
	{part: "grpc", place: place{begins: "Leaf, `Next`, one connection | open loop, 80", column: "p99, ms", over: "grpc-go, bare, one connection | open loop, 80"},
		what: "p99 to the bare server", limit: 2, unit: "×", missed: sharedCores, evidence: "its column"},
	{part: "grpc", place: place{begins: "Leaf, 50 streams", column: wireCPU, over: "grpc-go, bare, one connection | closed"},
		what: "CPU to a call of the bare server", limit: 0.5, unit: "×"},
}

func floodGoals() (all []goal) {
	for _, f := range floods {
		all = append(all, goal{part: "floods", place: place{begins: f.name, column: "p99, ms"}, what: "p99", limit: 50, unit: " ms",
			missed: "the flood's clients take both cores", evidence: "the spread of the rounds"})
	}
	return all
}

var scaleGoals = []goal{
	{part: "scale", place: place{begins: "10000, HTTP", column: "for one, kB"}, what: "memory", limit: 2, unit: " kB"},
	{part: "scale", place: place{begins: "10000, HTTP", column: "CPU idle, % of a core"}, what: "CPU", limit: 0.5, unit: " %"},
	{part: "scale", place: place{begins: "10000, Redis protocol", column: "for one, kB"}, what: "memory", limit: 2, unit: " kB"},
	{part: "scale", place: place{begins: "10000, Redis protocol", column: "CPU idle, % of a core"}, what: "CPU", limit: 0.5, unit: " %"},
	{part: "scale", place: place{begins: "100 |", column: "IDs a call"}, what: "IDs a call", limit: 1000, least: true},
}

func pgoGoals() (all []goal) {
	for _, row := range []string{"HTTP, Java Leaf's route", "HTTP, `/v1/ids`", "Redis protocol |", "Redis protocol, 16 at once", "gRPC, one connection"} {
		all = append(all, goal{part: "pgo", place: place{begins: row, column: "saved, %"}, what: "saved", limit: 3, least: true, unit: " %",
			missed: "so the program is built without one", evidence: "the spread of the rounds"})
	}
	return all
}

// carried is the rate of allocations for many tags on MariaDB, from the table of stores.
const carried = 9000

var fleetGoals = []goal{
	{part: "fleet", place: place{begins: "1000, 1000000, 10, 10000000 | 1000 |", column: "store calls a second"}, what: "one MariaDB carries it", limit: carried},
	{part: "fleet", place: place{begins: "1000, 1000000, 10, 10000000 | 100000 |", column: "store calls a second"}, what: "one MariaDB carries it", limit: carried},
	{part: "fleet", place: place{begins: "1000, 1000000, 1000, ", column: "store calls a second"}, what: "one MariaDB carries it", limit: carried,
		missed:   "each server keeps a stock of each tag, and most take a step a call: raise the step of rare tags, or send a tag to few servers",
		evidence: "the first two rows"},
	{part: "fleet", place: place{begins: "100, ", column: "store calls a second"}, what: "one MariaDB carries it", limit: carried},
	{part: "fleet", place: place{begins: "10, ", column: "store calls a second"}, what: "one MariaDB carries it", limit: carried},
	{part: "fleet", place: place{begins: "3, 50, 3, 15000; the first 40s, simulated", column: "store calls a second", over: "3, 50, 3, 15000; the first 40s, real"},
		what: "to real servers", limit: 2, unit: "×"},
}

// A fleet of 1,000 servers with a million tags needs this many calls a second, in the table of fleets.
const fleetCalls = 4262

func storeGoals() (all []goal) {
	for _, store := range []string{"file", "sqlite", "mariadb", "mariadb-binlog", "postgres", "etcd", "etcd-3-members", "zookeeper", "nats-unsynced",
		"redis-always", "redis-everysec", "ticket", "ticket-stride"} {
		g := goal{part: "stores", place: place{begins: store + " |", column: "32 own / same"}, what: "carries the first fleet above", limit: fleetCalls, least: true}
		switch store {
		case "etcd-3-members":
			g.missed, g.evidence = "its three members share two cores and a disk here", "the row above"
		case "zookeeper":
			g.missed, g.evidence = "an allocation is two round trips", "the table below"
		case "ticket":
			g.missed, g.evidence = "a `REPLACE` has one ID, so a tag's row is written once for each", "`go doc ./driver/ticket`"
		}
		all = append(all, g)
	}
	return all
}

// driverReasons say why a driver needs more than the bare loop. The page has them at length.
var driverReasons = map[string]string{
	"mariadb":                "two answers for a call, and a packet that is not prepared",
	"mariadb, to its packet": "16 connections for 32 callers, so fewer share a wake-up",
	"postgres":               "it prepares nothing, for poolers",
	"etcd":                   "a goroutine, a time limit and two comparisons for a call",
	"redis":                  "a goroutine for a call, and a script that reads the server's state",
	"sqlite":                 "",
	"nats":                   "it reads the cell before each write",
	"zookeeper":              "it reads the cell before each write",
}

func driverGoals() (all []goal) {
	for _, driver := range []string{"mariadb", "mariadb, to its packet", "postgres", "etcd", "redis", "sqlite", "nats", "zookeeper"} {
		for _, callers := range []string{" | 1 |", " | 32 |"} {
			g := goal{part: "drivers", place: place{begins: driver + callers, column: "ratio, at most 1.2"}, what: "CPU", limit: 1.2, unit: "×",
				missed: driverReasons[driver]}
			if driver == "nats" || driver == "zookeeper" {
				g.evidence = "two round trips"
			}
			rate := g
			rate.column, rate.what, rate.limit, rate.least = "ratio, at least 1", "rate", 1, true
			rate.missed, rate.evidence = "the processor time, which the store shares", ""
			all = append(all, g, rate)
		}
	}
	return all
}

func strictGoals() (all []goal) {
	for _, store := range []string{"sqlite", "mariadb", "mariadb-binlog", "postgres", "etcd", "etcd-3-members", "zookeeper", "nats-unsynced",
		"redis-always", "redis-everysec"} {
		all = append(all, goal{part: "strict", place: place{begins: store + " |", column: "64 callers", number: 1}, what: "IDs a round trip of 64 callers",
			limit: 10, least: true, missed: "a round trip takes so short that the processor decides", evidence: "the first column"})
	}
	return all
}
