package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/worker"
)

// A state file that cannot be used costs a worker ID, and nothing else.
func TestUnusableState(t *testing.T) {
	tests := map[string]func(d *disk){
		"empty":          func(d *disk) { d.cached = nil },
		"truncated":      func(d *disk) { d.cached = d.cached[:5000] },
		"one byte":       func(d *disk) { d.cached = d.cached[:1] },
		"bit rot":        func(d *disk) { d.cached[4096+100] ^= 1 },
		"bit rot, 2":     func(d *disk) { d.cached[100] ^= 1 },
		"foreign":        func(d *disk) { d.cached = []byte("hello, world") },
		"zeros":          func(d *disk) { d.cached = make([]byte, 8192) },
		"slot 0 lost":    func(d *disk) { clear(d.cached[:4096]) },
		"slot 1 lost":    func(d *disk) { clear(d.cached[4096:]) },
		"slots swapped":  func(d *disk) { d.cached = slices.Concat(d.cached[4096:], d.cached[:4096]) },
		"slot 0 doubled": func(d *disk) { copy(d.cached[4096:], d.cached[:4096]) },
		"other file":     func(d *disk) { d.identity = "another" },
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				n := w.nodes[0]
				p := hold(t, n, 0)
				mustIssue(t, p, 100)
				time.Sleep(5 * time.Second)
				mustIssue(t, p, 100)
				p.kill()
				harm(n.disk)
				w.down.Store(true)
				p = n.start()
				awaitErr(t, p, "ask the worker registry")
				w.down.Store(false)
				awaitHeld(t, p, 1)
				mustIssue(t, p, 100)
				p.kill()
				mustIssue(t, hold(t, n, 2), 100) // 0 is left to run out, and the mark of 1 is ahead
			})
		})
	}
}

func TestStateOfAnotherRegistry(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		mustIssue(t, hold(t, n, 0), 100)
		n.proc.kill()
		var log strings.Builder
		p := n.start(func(o *worker.Options) {
			o.RegistryKey, o.Logger = "other", slog.New(slog.NewTextHandler(&log, nil))
		})
		awaitHeld(t, p, 1)
		if !strings.Contains(log.String(), "another registry, memory") {
			t.Errorf("logged %s", log.String())
		}
	})
}

func TestStateOfNewerRelease(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "state"))
	if _, err := f.WriteAt(append([]byte("leaf-slot 3 whatever it says\n"), make([]byte, 8192)...), 0); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(f.Name())
	if _, err := worker.NewKeeper(memory.New().Registry(), &worker.Options{State: worker.NewStateFile(f, "")}); !errors.Is(err, worker.ErrNewer) {
		t.Errorf("got error %v", err)
	}
	if after, _ := os.ReadFile(f.Name()); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

// A state file of format 1 is read, and the log says that it is not one any more.
func TestStateOfEarlierRelease(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "state"))
	for number := range 2 {
		text := `{"identity":"x","registry":"","worker":3}`
		sum := crc32.Checksum(fmt.Appendf(nil, "%d%s", number+1, text), crc32.MakeTable(crc32.Castagnoli))
		slot := append(fmt.Appendf(nil, "leaf-slot 1 %d %d %08x\n%s", number+1, len(text), sum, text), make([]byte, 4096)...)
		if _, err := f.WriteAt(slot[:4096], int64((number+1)%2)*4096); err != nil {
			t.Fatal(err)
		}
	}
	for _, warns := range []int{1, 0} {
		var log strings.Builder
		state := worker.NewStateFile(f, "")
		k, err := worker.NewKeeper(memory.New().Registry(), &worker.Options{State: state, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "from=1 to=2"); n != warns {
			t.Errorf("%d lines name the formats, want %d: %s", n, warns, log.String())
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- k.Run(ctx) }()
		for !k.Status().Held {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestOpenStateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	for range 2 {
		state, err := worker.OpenStateFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := worker.OpenStateFile(path); !errors.Is(err, worker.ErrInUse) || !strings.Contains(err.Error(), path) {
			t.Errorf("opened a second time: %v", err)
		}
		if _, err := filelock.OpenLocal(path); !errors.Is(err, worker.ErrInUse) {
			t.Errorf("locked a second time: %v", err)
		}
		if err := state.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if content, err := os.ReadFile(path); err != nil || len(content) > 0 {
		t.Errorf("opening the file has written %q, %v", content, err)
	}
	if _, err := worker.OpenStateFile(filepath.Join(path, "below")); err == nil {
		t.Error("opened a file in a folder that is not there")
	}
}

// A failing disk stops IDs at the mark; they continue once it works.
func TestDiskFails(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 100)
		n.disk.broken.Store(true)
		time.Sleep(10 * time.Second)
		if p.issue(1) != 0 {
			t.Error("issued beyond the mark")
		}
		if p.keeper.Status().Err == nil {
			t.Error("the keeper says nothing")
		}
		n.disk.broken.Store(false)
		time.Sleep(10 * time.Second)
		mustIssue(t, p, 100)
		n.disk.broken.Store(true)
		if err := p.stop(); err == nil || !strings.Contains(err.Error(), "not handed back") {
			t.Errorf("got error %v", err)
		}
		if records, _ := w.reg.List(t.Context()); !records[0].Held() {
			t.Error("handed back although the file was not voided")
		}
	})
}

func TestStatic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "static-7")
	s, err := worker.OpenStatic(openFile(t, path), 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.Assign(t.Context(), 1023); id != 7 || err != nil {
		t.Errorf("assigned %d, %v", id, err)
	}
	if _, err := s.Assign(t.Context(), 3); err == nil {
		t.Error("assigned a worker ID that the layout does not hold")
	}
	held := worker.Record{Worker: 7, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(1000)}
	first, err := s.Load(t.Context(), 7)
	if err != nil || first.Horizon.IsZero() {
		t.Fatalf("a file that may stand in the place of one that was lost: %+v, %v", first, err)
	}
	if _, err := s.Swap(t.Context(), first, held); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), worker.Record{Worker: 7}, held); !errors.Is(err, worker.ErrConflict) {
		t.Errorf("a second claim: %v", err)
	}
	if _, err := s.Swap(t.Context(), worker.Record{Worker: 8}, worker.Record{Worker: 8, Term: 1}); err == nil {
		t.Error("another worker ID was written")
	}
	again, err := worker.OpenStatic(openFile(t, path), 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := again.Load(t.Context(), 7); err != nil || !r.Equal(held) {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.OpenStatic(openFile(t, path), 7, 0); err == nil || !strings.Contains(err.Error(), "delete the file when") {
		t.Errorf("a damaged file: %v", err)
	}
}

// A clock a year ahead once claimed an assigned worker ID. Two minutes after an operator freed it,
// its server claims it.
func TestAssignedWorkerIDFreed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		static, err := worker.OpenStatic(openFile(t, filepath.Join(t.TempDir(), "static-3")), 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := w.nodes[0]
		n.registry = static
		ahead := worker.Record{Worker: 3, Term: 1, Horizon: time.Now().AddDate(1, 0, 0)}
		found, err := static.Load(t.Context(), 3)
		if err == nil {
			_, err = static.Swap(t.Context(), found, ahead)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := n.start()
		awaitErr(t, p, "the worker ID was used far in the future: worker ID 3")
		if _, err := worker.Free(t.Context(), static, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		begin := time.Now()
		awaitHeld(t, p, 3)
		mustIssue(t, p, 1000)
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("it took two minutes and %v", took)
		}
	})
}

// A server waits for its assigned worker ID.
func TestAssignedWorkerIDWaits(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		static, err := worker.OpenStatic(openFile(t, filepath.Join(t.TempDir(), "static-3")), 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := w.nodes[0]
		start := func(reclaim bool) *process {
			n.registry = static
			return n.start(func(o *worker.Options) { o.Reclaim = reclaim })
		}
		p := start(false)
		awaitHeld(t, p, 3)
		mustIssue(t, p, 1000)
		p.kill()
		begin := time.Now()
		p = start(false)
		awaitErr(t, p, "is assigned to this node, but times up to")
		awaitHeld(t, p, 3)
		mustIssue(t, p, 1000)
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("after a kill it took %v", took)
		}
		p.kill()
		w.reboot(n.disk)
		begin = time.Now()
		p = start(false)
		awaitHeld(t, p, 3)
		mustIssue(t, p, 1000)
		if took := time.Since(begin); took < 20*time.Second {
			t.Errorf("after a reboot it took only %v", took)
		}
		p.kill()
		w.reboot(n.disk)
		begin = time.Now()
		p = start(true)
		awaitHeld(t, p, 3)
		mustIssue(t, p, 1000)
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("with reclaim it took %v", took)
		}
	})
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A process continues from the file, with its clock set back: the mark that it writes must not be
// less than the one that it began at.
func TestMarkOnlyGrows(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		n := w.nodes[0]
		p := hold(t, n, 0)
		for range 60 {
			mustIssue(t, p, 10)
			time.Sleep(100 * time.Millisecond)
		}
		p.kill()
		n.skew.Store(int64(-10 * time.Second))
		w.down.Store(true)
		p = n.start()
		time.Sleep(2 * time.Second)
		p.gen.reserve(1, byClock) // has the file written
		time.Sleep(100 * time.Millisecond)
		p.kill()
		w.down.Store(false)
		p = n.start()
		time.Sleep(3 * time.Second)
		for range 40 {
			p.gen.reserve(1000, atCursor)
			p.gen.answer()
			time.Sleep(100 * time.Millisecond)
		}
	})
}
