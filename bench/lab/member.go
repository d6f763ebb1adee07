package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A startup has the needs of a server with one kind of store.
type startup struct {
	name string
	args []string // of leaf serve

	first, idle, own, share figure // ms, MB, MB, % of a core
}

// firstTag is the tag that every new store has.
const firstTag = "leaf-segment-test"

// member compares a cluster of one server with a server on the embedded store.
func member(ctx context.Context, l *lab) (report, error) {
	binary, err := l.leaf(ctx)
	if err != nil {
		return report{}, err
	}
	alone, cluster, err := startups(ctx, l, binary)
	if err != nil {
		return report{}, err
	}
	for round := range l.rounds + 1 { // the first one creates the files
		for _, s := range []*startup{alone, cluster} {
			if err := s.measure(ctx, binary, round > 0, round > l.rounds-2); err != nil {
				return report{}, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	var t strings.Builder
	t.WriteString("| store | first ID after, ms | resident, idle, MB | of it not of files | CPU idle, % of a core |\n|---|---|---|---|---|\n")
	for _, s := range []*startup{alone, cluster} {
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s |\n", s.name, s.first.spread(), short(s.idle.median()), short(s.own.median()), s.share.spread())
	}
	size, err := releaseSize(ctx, l)
	if err != nil {
		return report{}, err
	}
	inits, clock, bytes, err := etcdInits(ctx, binary)
	if err != nil {
		return report{}, err
	}
	fmt.Fprintf(&t, "\nThe released program has %s MB. Each start initialises etcd's %d packages, also\n"+
		"without a cluster: %s ms and %s kB.\n", short(size), inits, short(clock), short(bytes))
	return report{table: t.String(), found: map[string]result{
		"member-start":  {figure: cluster.first},
		"member-memory": {figure: cluster.own.above(alone.own)},
		"member-idle":   {figure: cluster.share},
		"release-size":  {figure: figure{size}},
	}}, nil
}

// startups creates both stores.
func startups(ctx context.Context, l *lab, binary string) (alone, cluster *startup, err error) {
	dir, err := os.MkdirTemp(l.dir, "member")
	if err != nil {
		return nil, nil, err
	}
	port, err := testserver.FreePort()
	if err != nil {
		return nil, nil, err
	}
	addr, data := fmt.Sprint("127.0.0.1:", port), filepath.Join(dir, "cluster")
	if out, err := exec.CommandContext(ctx, binary, "cluster", "init", addr, "--data", data).CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, out)
	}
	return &startup{name: "embedded (SQLite)", args: []string{"--data", filepath.Join(dir, "alone")}},
		&startup{name: "a cluster of one server", args: []string{"--data", data, "--cluster", addr}}, nil
}

// measure starts the server once, and watches it if that is asked for.
func (u *startup) measure(ctx context.Context, binary string, counts, watch bool) error {
	began := time.Now()
	s, err := bench.Start(binary, append([]string{"--listen", "127.0.0.1:0", "--resp", "off"}, u.args...)...)
	if err != nil {
		return err
	}
	defer s.Stop()
	conn := routes(s).Open()
	defer conn.Close()
	if err := use(ctx, conn, firstTag); err != nil || !counts {
		return err
	}
	u.first = append(u.first, time.Since(began).Seconds()*1000)
	if !watch {
		return nil
	}
	time.Sleep(rest)
	share, err := busy(s.PID(), 10*time.Second)
	if err != nil {
		return err
	}
	m, err := bench.MemoryOf(s.PID())
	u.idle, u.own, u.share = append(u.idle, m.Resident/1e6), append(u.own, m.Own/1e6), append(u.share, share)
	return err
}

// releaseSize is the size of the program as it is released, in MB.
func releaseSize(ctx context.Context, l *lab) (float64, error) {
	dir, err := os.MkdirTemp(l.dir, "release")
	if err != nil {
		return 0, err
	}
	path := filepath.Join(dir, "leaf")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", path, "./cmd/leaf")
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(l.root, "deploy/release/release.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the released program: %w\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / 1e6, nil
}

var etcdInit = regexp.MustCompile(`(?m)^init go\.etcd\.io/\S+ @\S+ ms, (\S+) ms clock, (\d+) bytes`)

// etcdInits returns how many packages of etcd the program initialises, with the time in ms and the memory
// in kB that this takes.
func etcdInits(ctx context.Context, binary string) (packages int, clock, kilobytes float64, err error) {
	cmd := exec.CommandContext(ctx, binary, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, 0, err
	}
	for _, m := range etcdInit.FindAllStringSubmatch(string(out), -1) {
		ms, err1 := strconv.ParseFloat(m[1], 64)
		size, err2 := strconv.ParseFloat(m[2], 64)
		if err1 != nil || err2 != nil {
			return 0, 0, 0, fmt.Errorf("malformed line of the initialisation: %s", m[0])
		}
		packages, clock, kilobytes = packages+1, clock+ms, kilobytes+size/1e3
	}
	return packages, clock, kilobytes, nil
}
