package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
)

// footprint measures the whole program with 1, 1,000 and 100,000 tags: its start, its memory,
// the first use of every tag, and what it does when nothing is asked of it.
func footprint(ctx context.Context, l *lab) (report, error) {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		return report{}, err
	}
	defer os.RemoveAll(dir)
	leaf := filepath.Join(dir, "leaf")
	build := exec.CommandContext(ctx, "go", "build", "-o", leaf, "./cmd/leaf")
	build.Dir = l.root
	if out, err := build.CombinedOutput(); err != nil {
		return report{}, fmt.Errorf("build leaf: %w\n%s", err, out)
	}
	var t strings.Builder
	t.WriteString("| tags | first ID after | resident, idle | each tag used once by 64 callers | resident then | per tag |" +
		" CPU idle | most resident under load |\n|---|---|---|---|---|---|---|---|\n")
	for _, n := range []int{1, 1000, 100_000} {
		row, err := footprintOf(ctx, leaf, filepath.Join(dir, strconv.Itoa(n)), n)
		if err != nil {
			return report{}, err
		}
		t.WriteString(row)
	}
	return report{table: t.String()}, nil
}

func footprintOf(ctx context.Context, leaf, dir string, tags int) (string, error) {
	if err := createTags(ctx, dir, tags); err != nil {
		return "", err
	}
	s, first, err := startServer(ctx, leaf, dir)
	if err != nil {
		return "", err
	}
	defer s.stop()
	time.Sleep(2 * time.Second) // until it rests
	idle := s.resident("VmRSS")
	began := time.Now()
	if err := s.useAll(tags); err != nil {
		return "", err
	}
	used := time.Since(began)
	time.Sleep(35 * time.Second) // a check of the tags, which collects garbage
	then := s.resident("VmRSS")
	cpu, watched := s.cpu(), time.Now()
	time.Sleep(60 * time.Second)
	share := (s.cpu() - cpu) / time.Since(watched).Seconds() * 100
	load := exec.CommandContext(ctx, leaf, "bench", tagName(0), "--server", s.url, "--rate", "5000", "--duration", "5s")
	if out, err := load.CombinedOutput(); err != nil {
		return "", fmt.Errorf("leaf bench: %w\n%s", err, out)
	}
	return fmt.Sprintf("| %d | %v | %.1f MB | %.2f s | %.1f MB | %.0f bytes | %.2f %% of a core | %.1f MB |\n", tags,
		first.Round(time.Millisecond), idle/1e6, used.Seconds(), then/1e6, (then-idle)/float64(tags), share, s.resident("VmHWM")/1e6), nil
}

func tagName(i int) string { return fmt.Sprintf("tag-%06d", i) }

func createTags(ctx context.Context, dir string, n int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := sql.Open("sqlite", filepath.Join(dir, "ids.db"))
	if err != nil {
		return err
	}
	defer file.Close()
	db, err := sqlite.New(file, nil)
	if err != nil {
		return err
	}
	tags := make([]segment.Tag, n)
	for i := range tags {
		tags[i] = segment.Tag{Name: tagName(i), MaxID: 1, Step: 1000}
	}
	return errors.Join(db.Init(ctx, tags), db.Close())
}

// A server is a process of leaf.
type server struct {
	cmd *exec.Cmd
	url string
}

// startServer returns how long the process took to its first ID, too.
func startServer(ctx context.Context, leaf, dir string) (*server, time.Duration, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	addr := listener.Addr().String()
	listener.Close()
	s := &server{url: "http://" + addr}
	s.cmd = exec.CommandContext(ctx, leaf, "serve", "--listen", addr, "--resp", "off", "--data", dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	var log bytes.Buffer
	s.cmd.Stderr = &log
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, 0, err
	}
	for time.Since(began) < time.Minute {
		if err = s.use(tagName(0)); err == nil {
			return s, time.Since(began), nil
		}
		time.Sleep(time.Millisecond)
	}
	s.stop()
	return nil, 0, fmt.Errorf("the server has no ID: %w\n%s", err, &log)
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // it was measured
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// use takes an ID of tag.
func (s *server) use(tag string) error {
	resp, err := client.Get(s.url + "/api/segment/get/" + tag)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

// useAll takes an ID of each tag, by 64 callers.
func (s *server) useAll(tags int) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(tags); i = next.Add(1) - 1 {
				if err := s.use(tagName(int(i))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// resident returns one of the sizes in /proc, in bytes.
func (s *server) resident(name string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), name+":")
	kb, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return kb * 1024
}

// cpu returns how many seconds of CPU the process has used.
func (s *server) cpu() float64 {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}
