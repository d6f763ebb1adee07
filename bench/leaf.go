package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Build builds the server of the repository at root and returns its path, below dir. Flags are
// further ones of go build.
func Build(ctx context.Context, root, dir string, flags ...string) (binary string, err error) {
	binary = filepath.Join(dir, "leaf")
	args := append([]string{"build", "-buildvcs=false", "-trimpath", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/leaf")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leaf: %w\n%s", err, out)
	}
	return binary, nil
}

// A Leaf is a process of the server.
type Leaf struct {
	URL  string // of HTTP
	RESP string // the address of the Redis protocol; "": off
	GRPC string // the address for gRPC alone; likewise

	cmd *exec.Cmd
	mu  sync.Mutex
	log strings.Builder
}

// Start starts a server with arguments of `leaf serve`, and returns when it serves.
func Start(binary string, args ...string) (*Leaf, error) {
	s := &Leaf{cmd: exec.Command(binary, append([]string{"serve"}, args...)...)}
	s.cmd.Env = append(os.Environ(), "LEAF_LOG_FORMAT=text")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	serving := make(chan bool, 1)
	go s.read(stderr, serving)
	select {
	case ok := <-serving:
		if ok {
			return s, nil
		}
		err = errors.New("it ended")
	case <-time.After(time.Minute):
		err = errors.New("it does not serve")
	}
	s.Stop()
	return nil, fmt.Errorf("start leaf: %w\n%s", err, s.Log())
}

var servingLine = regexp.MustCompile(`msg=serving.* url=(\S+)(.*)`)

// port returns the address of a port in the rest of that line.
func port(rest, name string) string {
	_, after, _ := strings.Cut(rest+" ", " "+name+"=")
	addr, _, _ := strings.Cut(after, " ")
	return addr
}

// read reads the log to its end, and tells once whether the server serves.
func (s *Leaf) read(log io.Reader, serving chan<- bool) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 64<<20) // a server would wait for ever for a reader that gave up a long line
	told := false
	for lines.Scan() {
		if m := servingLine.FindStringSubmatch(lines.Text()); m != nil && !told {
			s.URL, s.RESP, s.GRPC, told = m[1], port(m[2], "resp"), port(m[2], "grpc"), true
			serving <- true
		}
		s.mu.Lock()
		fmt.Fprintln(&s.log, lines.Text())
		s.mu.Unlock()
	}
	if !told {
		serving <- false
	}
}

// Log returns the server's log so far.
func (s *Leaf) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// PID is the server's process.
func (s *Leaf) PID() int { return s.cmd.Process.Pid }

// Dir is its data directory, as its arguments name it.
func (s *Leaf) Dir() string {
	if i := slices.Index(s.cmd.Args, "--data"); i >= 0 && i+1 < len(s.cmd.Args) {
		return s.cmd.Args[i+1]
	}
	return ""
}

// Stop ends the server in good order.
func (s *Leaf) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // the results do not depend on it
}

// Metric returns a figure of /metrics by its name with its labels.
func (s *Leaf) Metric(ctx context.Context, name string) (float64, error) {
	return s.figure(ctx, "/metrics", name+" ")
}

// Heap collects the server's garbage, and returns how many bytes its heap holds then.
func (s *Leaf) Heap(ctx context.Context) (float64, error) {
	if _, err := s.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	return s.Metric(ctx, "go_memstats_heap_alloc_bytes")
}

// Mallocs is how many allocations the server has made. A look makes some itself, nearly the same
// number each time: those of /metrics differ by thousands.
func (s *Leaf) Mallocs(ctx context.Context) (float64, error) {
	return s.figure(ctx, "/debug/pprof/allocs?debug=1", "# Mallocs = ")
}

// figure returns the number behind a name at the beginning of a line of a page.
func (s *Leaf) figure(ctx context.Context, page, name string) (float64, error) {
	text, err := s.get(ctx, page)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(text, "\n"+name)
	if !found {
		return 0, fmt.Errorf("%s is without %s", page, name)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(line, 64)
}

// Get returns a page.
func (s *Leaf) Get(ctx context.Context, path string) (body string, err error) {
	return s.get(ctx, path)
}

func (s *Leaf) get(ctx context.Context, path string) (body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, res.Status, text)
	}
	return string(text), err
}
