package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// diskType is the type of these mounts. The name of one has the number of the process that serves it.
const (
	diskType = "leaf"
	diskName = "leaf-disk-"
)

// canMountDisks reports whether this process may mount disks: that takes root, and CAP_SYS_ADMIN and
// /dev/fuse in a container. It removes those of killed runs.
var canMountDisks = sync.OnceValue(func() bool {
	removeDeadDisks()
	dir, err := os.MkdirTemp("", "leaf-disk-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	_, end, err := startDisk(dir)
	end()
	return err == nil
})

// removeDeadDisks unmounts the disks whose processes have ended.
func removeDeadDisks() {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		var pid int
		fields := strings.Fields(line)
		if n, _ := fmt.Sscanf(fields[0], diskName+"%d", &pid); n == 1 && fields[2] == "fuse."+diskType && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
}

// newDisk returns a disk that ends with the test.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d, end, err := startDisk(t.TempDir())
	t.Cleanup(end)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// startDisk mounts a disk in an empty folder.
func startDisk(dir string) (d *disk, end func(), err error) {
	d, end = &disk{dir: filepath.Join(dir, "disk"), below: filepath.Join(dir, "below")}, func() {}
	for _, folder := range []string{d.dir, d.below} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, end, err
		}
	}
	root, err := fs.NewLoopbackRoot(d.below)
	if err != nil {
		return nil, end, err
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0) // so that servers do not inherit it
	if err != nil {
		return nil, end, fmt.Errorf("open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)
	if err := unix.Mount(diskName+fmt.Sprint(os.Getpid()), d.dir, "fuse."+diskType, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(device)
		return nil, end, fmt.Errorf("mount a disk: %w", err)
	}
	end = func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) }
	var mount fs.Options
	mount.DisabledCapabilities = fuse.CAP_PASSTHROUGH // the kernel would write around this process
	_, err = fs.Mount(fmt.Sprint("/dev/fd/", device), &diskNode{root.(*fs.LoopbackNode), d}, &mount)
	return d, end, err
}

// A diskNode is a file or a folder of a disk.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

func (n *diskNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{child.(*fs.LoopbackNode), n.disk}
}

func (n *diskNode) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	time.Sleep(time.Duration(n.disk.sync.Load()))
	return f.(fs.FileFsyncer).Fsync(ctx, flags)
}

func (n *diskNode) Write(ctx context.Context, f fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if n.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.(fs.FileWriter).Write(ctx, data, off)
}

func (n *diskNode) Allocate(ctx context.Context, f fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if n.disk.full.Load() {
		return syscall.ENOSPC
	}
	return f.(fs.FileAllocater).Allocate(ctx, off, size, mode)
}

func (n *diskNode) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	errno := n.LoopbackNode.Statfs(ctx, out)
	if n.disk.full.Load() {
		out.Bfree, out.Bavail = 0, 0
	}
	return errno
}

// TestDisk shows that a disk can be slow and full. Other programs use it: this one serves it, and a
// page fault of its own would wait for itself.
func TestDisk(t *testing.T) {
	t.Parallel()
	if !canMountDisks() {
		t.Log("left out: no disk can be mounted")
		return
	}
	d := newDisk(t)
	write := func() (string, error) {
		out, err := exec.Command("dd", "if=/proc/self/stat", "of="+filepath.Join(d.dir, "file"), "conv=fsync").CombinedOutput()
		return string(out), err
	}
	const sync = 200 * time.Millisecond
	d.sync.Store(int64(sync))
	begin := time.Now()
	if out, err := write(); err != nil || time.Since(begin) < sync {
		t.Errorf("a slow disk: %v after %v: %s", err, time.Since(begin), out)
	}
	d.full.Store(true)
	if out, err := write(); err == nil || !strings.Contains(strings.ToLower(out), fullDisk) {
		t.Errorf("a full disk: %v: %s", err, out)
	}
	d.full.Store(false)
	if out, err := write(); err != nil {
		t.Errorf("a disk with room again: %v: %s", err, out)
	}
}
