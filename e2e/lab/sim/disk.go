package sim

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// A disk is a state file. Written data survive a kill; only synced data survive a
// crash of the machine.
type disk struct {
	mu              sync.Mutex
	cached, durable []byte
	identity        string
	syncs           int
	broken          atomic.Bool // writes fail
}

// newDisk returns an empty disk that no other has the identity of.
func (w *world) newDisk() *disk {
	w.disks++
	return &disk{identity: fmt.Sprint("disk ", w.disks)}
}

// copyOf returns what cp -a makes of d: another file.
func (w *world) copyOf(d *disk) *disk {
	c := w.newDisk()
	if w.sabotaged("W8 lock") {
		return d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.sabotaged("W8 copy") {
		c.identity = d.identity
	}
	c.cached, c.durable = slices.Clone(d.cached), slices.Clone(d.cached)
	return c
}

// crash keeps only the data that survive a crash of the machine.
func (w *world) crash(d *disk) {
	w.disks++
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cached, d.identity = slices.Clone(d.durable), fmt.Sprint("disk ", w.disks)
}

// A handle is a disk as one process has it open, a [worker.File].
type handle struct {
	p *process
	d *disk
}

// ReadAt reads written data, synced or not.
func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if off >= int64(len(h.d.cached)) {
		return 0, io.EOF
	}
	n := copy(b, h.d.cached[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes to the cache.
func (h *handle) WriteAt(b []byte, off int64) (int, error) {
	if err := h.p.await(); err != nil {
		return 0, err
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.broken.Load() {
		return 0, io.ErrShortWrite
	}
	if missing := int(off) + len(b) - len(h.d.cached); missing > 0 {
		h.d.cached = append(h.d.cached, make([]byte, missing)...)
	}
	return copy(h.d.cached[off:], b), nil
}

// Sync makes the written data durable.
func (h *handle) Sync() error {
	if err := h.p.await(); err != nil {
		return err
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.broken.Load() {
		return io.ErrShortWrite
	}
	if h.d.syncs++; !h.p.w.sabotaged("W2 fsync") || h.d.syncs%2 == 1 {
		h.d.durable = slices.Clone(h.d.cached)
	}
	return nil
}
