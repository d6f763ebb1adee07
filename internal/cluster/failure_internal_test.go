package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/leaf-id/leaf/internal/hint"
)

// A member that has ended names the reason and a remedy, and says when a restart brings it back.
func TestFailure(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("etcd stopped: %w", &fs.PathError{Op: "write", Path: "wal", Err: syscall.ENOSPC})
	for reason, want := range map[error]error{full: hint.ErrDiskFull, errors.New("etcd stopped"): hint.ErrMemberEnded,
		fmt.Errorf("%w: member 1", hint.ErrRemoved): hint.ErrRemoved} {
		m, err := Open(Config{Dir: t.TempDir(), Peers: []string{"127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if restart, err := m.Failure(); restart || err != nil {
			t.Errorf("a member that runs: %v, %v", restart, err)
		}
		m.fail(reason)
		restart, err := m.Failure()
		if restart || err != want || hint.Of(err) == "" {
			t.Errorf("%v: %v, %v, want %v and a remedy", reason, restart, err, want)
		}
		if err := os.MkdirAll(filepath.Join(m.config.Dir, databaseFolder), 0o700); err != nil {
			t.Fatal(err)
		}
		if restart, _ := m.Failure(); restart != (reason == full && runtime.GOOS == "linux") {
			t.Errorf("%v, and the disk has room: restart %v", reason, restart)
		}
	}
}
