package main

import (
	"fmt"
	"strings"
)

// A goal is what this project asks of itself in one figure.
type goal struct {
	key    string
	part   string // the experiment that measures it
	what   string
	limit  float64
	least  bool   // the limit is a minimum, not a maximum
	unit   string // with the space before it
	missed string // why, where the figure is known to miss it

	evidence string // what shows that
	place           // of the part's table
}

// A result is the measured value of a goal.
type result struct {
	figure
	limit float64 // replaces the goal's, which is 0 then
}

// goals in the order of the table.
var goals = []goal{
	{key: "next", part: "peers", place: at("`segment.Buffer.Next`"), what: "`Next` to a bare atomic add, one goroutine", limit: 1.1, unit: "×",
		missed: "beside the add a call loads the segment and compares, as the second row below does"},
	{key: "next-all", part: "peers", place: at("`segment.Buffer.Next`"), what: "`Next` to the contended atomic add, all cores", limit: 1.1, unit: "×",
		missed: "between two adds a call loads the segment, so that a core makes fewer of them before the other one takes the cache line: the second row below does no more than that"},
	{key: "set", part: "peers", place: at("`segment.Set.Next`"), what: "`Set.Next` above `Next`, one goroutine", limit: 8, unit: " ns",
		missed: "the hash of the name is half of it, the look at its slot and the comparison the other half; a `sync.Map`, the third row below, takes as long"},
	{key: "set-all", part: "peers", place: at("`segment.Set.Next`"), what: "`Set.Next` above `Next`, all cores", limit: 8, unit: " ns",
		missed: "the longer a core is busy between two adds, the fewer of them it makes before the other one takes the cache line: a look-up in a `sync.Map`, the third row below, costs the same"},
	{key: "cursor-all", part: "peers", place: at("`segment.Cursor`"), what: "`Cursor` to the contended atomic add, all cores", limit: 0.3, unit: "×"},
	{key: "cursor-rise", part: "peers", place: at("`segment.Cursor`"), what: "`Cursor`, IDs a second of all cores to those of one", limit: 1, least: true, unit: "×"},
	{key: "take", part: "peers", place: at("`segment.Buffer.Take`"), what: "`Take` of 1000, per ID", limit: 0.02, unit: " ns"},
	{key: "take-allocs", part: "peers", place: at("`segment.Buffer.Take`"), what: "`Take` into a reused slice, allocations a call", unit: ""},
	{key: "snowflake", part: "peers", place: at("`snowflake.Generator`, burst"), what: "snowflake burst, as fast as bwmarrin/snowflake, 1 goroutine", limit: 40, least: true, unit: "×",
		missed: "bwmarrin takes 244 ns, the format; 40× is 6.1 ns, and the bare atomic add is nine tenths of a call"},
	{key: "snowflake-2", part: "peers", place: at("`snowflake.Generator`, burst"), what: "the same, 2 goroutines", limit: 25, least: true, unit: "×",
		missed: "bwmarrin takes 244 ns, the format; 25× is 9.8 ns, and the contended atomic add is nine tenths of a call"},
	{key: "paced", part: "peers", place: at("`snowflake.Generator`, sustained"), what: "snowflake sustained, to the format's 244 ns an ID", limit: 1.05, unit: "×"},
	{key: "paced-cpu", part: "peers", place: at("`snowflake.Generator`, sustained"), what: "the same, of a core", limit: 25, unit: " %"},
	{key: "uid-fall", part: "peers", place: at("`snowflake.Generator`, uid"), what: "uid cached on 2, 4, 8 goroutines to 1, over the atomic add's own (worst)", limit: 1.1, unit: "×"},
	{key: "uid-generator", part: "peers", place: at("`snowflake.Generator`, uid"), what: "uid cached, as fast as uid-generator, 1 … 8 goroutines (worst)", limit: 5, least: true, unit: "×"},
	{key: "cosid", part: "peers", place: at("`segment.Cursor`"), what: "`Cursor`, as fast as CosId's segment chain, one thread", limit: 3, least: true, unit: "×",
		missed: "both are a few instructions more than the loop around them; other runs had 2.92× and 3.45×"},
	{key: "cosid-all", part: "peers", place: at("`segment.Cursor`"), what: "the same, all cores", limit: 10, least: true, unit: "×"},
	{key: "resp-1", part: "resp", place: at("Leaf, -P 1 | closed"), what: "Redis protocol, CPU of an INCR to Redis, -P 1", limit: 1, unit: "×",
		missed: "in both nearly all of it is the system calls"},
	{key: "resp-16", part: "resp", place: at("Leaf, -P 16 |"), what: "the same, -P 16", limit: 0.8, unit: "×"},
	{key: "resp-64", part: "resp", place: at("Leaf, -P 64 |"), what: "the same, -P 64", limit: 0.45, unit: "×",
		missed: "64 commands share the system calls; what is left is parsing and the look-up of the tag"},
	{key: "resp-rate-1", part: "resp", place: at("Leaf, -P 1 | closed"), what: "Redis protocol, INCR a second to Redis, -P 1", limit: 1, least: true, unit: "×"},
	{key: "resp-rate-16", part: "resp", place: at("Leaf, -P 16 |"), what: "INCR a second to Redis, -P 16", limit: 1, least: true, unit: "×"},
	{key: "resp-rate-64", part: "resp", place: at("Leaf, -P 64 |"), what: "INCR a second to Redis, -P 64", limit: 2, least: true, unit: "×",
		missed: "Redis has a core and the generator the other one; Leaf's loop and the generator share the two"},
	{key: "http", part: "http", place: at("Leaf, `/api/segment/get/{key}` | closed"), what: "HTTP ID route, CPU of a request to nginx", limit: 1.3, unit: "×",
		missed: "in both nearly all of it is the system calls: nine tenths here, by a profile"},
	{key: "http-p99", part: "http", place: at("Leaf, `/api/segment/get/{key}` | open loop, 80"), what: "the same, p99 at 80 % load to nginx", limit: 2, unit: "×",
		missed: "the generator takes the larger part of the two cores: see its column below"},
	{key: "grpc", part: "grpc", place: at("Leaf, `Next`, one connection | closed"), what: "gRPC unary, CPU of a call to bare grpc-go", limit: 1.1, unit: "×",
		missed: "the same library serves both; Leaf adds the check of the caller, the limits, the look-up of the tag and the figures of /metrics"},
	{key: "stream", part: "grpc", place: at("Leaf, 2 streams"), what: "gRPC stream, 64 in flight, CPU of an ID to that call", limit: 0.12, unit: "×"},
	{key: "v1-one", part: "v1", place: at("Leaf, one ID"), what: "`/v1`, CPU of a request for one ID to `net/http` that writes the same bytes", limit: 1.1, unit: "×"},
	{key: "v1-100", part: "v1", place: at("Leaf, 100 IDs |"), what: "the same, 100 IDs", limit: 1.1, unit: "×"},
	{key: "v1-1000", part: "v1", place: at("Leaf, 1,000 IDs"), what: "the same, 1,000 IDs", limit: 1.1, unit: "×"},
	{key: "v1-ranges", part: "v1", place: at("Leaf, 100 IDs as ranges"), what: "the same, ranges", limit: 1.1, unit: "×"},
	{key: "v1-stream-1", part: "v1", place: at("Leaf, 50 streams"), what: "gRPC stream, one in flight, CPU of an ID to a stream of bare grpc-go", limit: 1.1, unit: "×"},
	{key: "v1-stream-64", part: "v1", place: at("Leaf, 2 streams"), what: "the same, 64 in flight", limit: 1.1, unit: "×"},
	{key: "tls", part: "tls", place: at("Leaf, HTTP/1.1"), what: "HTTP/1.1 with TLS, CPU of a request to nginx with TLS", limit: 1, unit: "×"},
	{key: "tls-bare", part: "tls", place: at("Leaf, HTTP/1.1"), what: "the same, to a loop over `crypto/tls` that answers the same bytes", limit: 1.1, unit: "×",
		missed: "the loop reads no request, looks up no tag, checks no caller and has no limits", evidence: "its code, `bench/lab/tlsbare.go`"},
	{key: "tls-2", part: "tls", place: at("Leaf, HTTP/2"), what: "HTTP/2, CPU of a request to nginx", limit: 2, unit: "×",
		missed: "`net/http` serves HTTP/2: use HTTP/1.1, ranges, or a stream of gRPC where the rate matters", evidence: "the next goal"},
	{key: "tls-2-bare", part: "tls", place: at("Leaf, HTTP/2"), what: "the same, to bare `net/http`", limit: 1.1, unit: "×",
		missed: "Leaf adds the routes, the check of the caller, the headers of answers and the figures of /metrics", evidence: "`bench/lab/tlsbare.go`"},
	{key: "tls-batch", part: "tls", place: at("Leaf, `/v1`"), what: "TLS, `/v1` and 100 IDs a request, to nginx with a constant of that length", limit: 1.3, unit: "×"},
	{key: "tls-resp-1", part: "tls", place: at("Leaf, Redis protocol, -P 1 |"), what: "Redis protocol with TLS, CPU of an INCR to Redis with TLS, -P 1", limit: 1, unit: "×",
		missed: "a goroutine of its own serves an encrypted connection, and each request wakes it; Redis has a loop", evidence: "docs/design.md"},
	{key: "tls-resp-16", part: "tls", place: at("Leaf, Redis protocol, -P 16 |"), what: "the same, -P 16", limit: 0.8, unit: "×"},
	{key: "resp-allocs", part: "resp", place: at("Leaf, -P 1 | closed"), what: "Redis protocol, allocations a request", limit: 0.01},
	{key: "http-allocs", part: "http", place: at("Leaf, `/api/segment/get/{key}` | closed"), what: "HTTP ID route, allocations a request", limit: 0.01},
	{key: "change", part: "latency", place: at("a change of segments"), what: "p99.9 of `Next` at half load, over changes of segments to none", unit: "×"},
	{key: "slow", part: "latency", place: at("every 300 ms"), what: "the same, over changes and store calls of 100 ms", unit: "×"},
	{key: "slow-wire", part: "latency", place: at("changes, store calls"), what: "the same over HTTP", unit: "×"},
	{key: "flood", part: "floods", what: "p99 of ten clients while others flood the server (worst)", limit: 50, unit: " ms"},
	{key: "start", part: "footprint", place: at("1 |"), what: "start to the first ID, embedded store", limit: 15, unit: " ms",
		missed: "the program alone takes 6 ms of the processor (`leaf version`); the rest opens the store and serves"},
	{key: "idle-memory", part: "footprint", place: at("1 |"), what: "resident memory, idle", limit: 20, unit: " MB",
		missed: "most are pages of the program's file, which the kernel takes back where memory is short: see below"},
	{key: "load-memory", part: "footprint", place: at("1 |"), what: "resident memory, under load", limit: 30, unit: " MB",
		missed: "pages of the program's file, as when idle"},
	{key: "tag-memory", part: "footprint", place: at("100000 |"), what: "100,000 tags: heap of a tag used once", limit: 1024, unit: " bytes",
		missed: "the buffer has half a kilobyte, and the console and `/metrics` remember a quarter of one", evidence: "a profile of the heap"},
	{key: "tags-use", part: "footprint", place: at("100000 |"), what: "100,000 tags: first use of all by 64 callers", limit: 5, unit: " s",
		missed: "the server and its callers fill both cores: below its table stands whose processor time it is"},
	{key: "tags-cpu", part: "footprint", place: at("100000 |"), what: "100,000 tags: idle, of a core", limit: 0.5, unit: " %",
		missed: "SQLite joins the names and steps of all tags every 30 s"},
	{key: "member-start", part: "member", place: at("a cluster"), what: "a cluster of one server: start to the first ID", limit: 1000, unit: " ms"},
	{key: "member-memory", part: "member", what: "the same, its own memory, idle, above that with the embedded store", limit: 20, unit: " MB"},
	{key: "member-idle", part: "member", what: "the same, idle, of a core", limit: 1, unit: " %"},
	{key: "release-size", part: "member", what: "size of the released program", limit: 40, unit: " MB"},
	{key: "scale-tag-memory", part: "scale", place: at("1000000 |"), what: "1,000,000 tags: heap of a tag used once", limit: 1152, unit: " bytes",
		missed: "as with 100,000 tags"},
	{key: "scale-tags-cpu", part: "scale", place: at("1000000 |"), what: "1,000,000 tags: idle, of a core", limit: 0.5, unit: " %",
		missed: "Go collects garbage at least every 2 minutes, which takes 1.9 s of the processor with this heap", evidence: "a profile of the idle server"},
	{key: "scale-tags-use", part: "scale", place: at("1000000 |"), what: "1,000,000 tags: CPU of the first use of one, to that with 100,000 tags", limit: 1.2, unit: "×"},
	{key: "scale-conns-cpu", part: "scale", what: "10,000 idle connections, of a core", limit: 0.5, unit: " %"},
	{key: "scale-idle", part: "scale", place: at("1000 |"), what: "1,000 idle servers on one store, its statements a second", limit: 500},
	{key: "scale-restart", part: "scale", place: at("1000 |"), what: "1,000 servers that restart at once, until the last has an ID and a worker ID", limit: 60, unit: " s"},
	{key: "tail-explained", part: "tail", place: at("50 %"), what: "requests above 5 ms in 30 minutes at 50 and 80 % load, explained", limit: 100, least: true, unit: " %",
		missed: "the lab saw none of its causes during the others: see below the tables"},
	{key: "pgo", part: "pgo", what: "CPU of a request that a profile for the compiler saves (median over the kinds of requests)", limit: 3, least: true, unit: " %",
		missed: "so the program is built without one"},
}

const goalsHead = "| what | part | asked | median | least … most | reached |\n|---|---|---|---|---|---|\n"

// row is a line of the table.
func (g goal) row(r result) string {
	limit, bound, reached := g.judge(r)
	met := "yes"
	if !reached {
		met = "**no**" + g.why()
	}
	return fmt.Sprintf("%s %s %s%s | %s%s | %s … %s | %s |\n", g.head(), bound, short(limit), g.unit,
		short(r.median()), g.unit, short(r.least()), short(r.most()), met)
}

// head is the beginning of a goal's row, which no other one has.
func (g goal) head() string { return "| " + g.what + " | " + g.part + " |" }

// goalsTable returns the goals of an experiment as a table; "" if it has no goals.
func goalsTable(part string, found map[string]result) string {
	var t strings.Builder
	for _, g := range goals {
		if r, ok := found[g.key]; ok && g.part == part {
			t.WriteString(g.row(r))
		}
	}
	if t.Len() == 0 {
		return ""
	}
	return goalsHead + t.String()
}

// complete reports a goal of a part that nothing was found for, or the other way round.
func complete(part string, found map[string]result) error {
	n := 0
	for _, g := range goals {
		if g.part != part {
			continue
		}
		if len(found[g.key].figure) == 0 {
			return fmt.Errorf("nothing was found for the goal %q", g.key)
		}
		n++
	}
	if n != len(found) {
		return fmt.Errorf("%d figures were found for %d goals", len(found), n)
	}
	return nil
}

// updateGoals replaces the measured rows in the table of all goals and keeps the others.
func updateGoals(old string, found map[string]result) string {
	rows := make(map[string]string)
	for line := range strings.Lines(old) {
		if cells := strings.SplitAfterN(line, " |", 3); len(cells) == 3 {
			rows[cells[0]+cells[1]] = line
		}
	}
	var t strings.Builder
	t.WriteString("\n" + goalsHead)
	for _, g := range goals {
		row := rows[g.head()]
		if r, ok := found[g.key]; ok {
			row = g.row(r)
		}
		t.WriteString(row)
	}
	return t.String() + "\n"
}
