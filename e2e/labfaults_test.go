package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/nats-io/nats.go"
)

// replaceFolder makes a folder a copy of another one, with its files' owners. What vanishes
// from that one meanwhile is left out.
func replaceFolder(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(to, "*"))
	for _, name := range old {
		err = errors.Join(err, os.RemoveAll(name))
	}
	if err != nil {
		return err
	}
	out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "No such file") {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// canMount reports whether this process may mount, which takes root, and CAP_SYS_ADMIN in a
// container.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "leaf-mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	return mountSmall(dir, 1) == nil && exec.Command("umount", dir).Run() == nil
})

// mountSmall mounts a disk of so many megabytes.
func mountSmall(dir string, size int) error {
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "leaf-lab", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mount a small disk: %w: %s", err, out)
	}
	return nil
}

// smallDisk moves the folder of a store to a small disk, which is full between do and undo. It
// restarts the database in the end.
func smallDisk(t *testing.T, dir string, kill, start func() error) labFault {
	t.Helper()
	if !canMount() {
		return labFault{}
	}
	if kill == nil {
		kill, start = func() error { return nil }, func() error { return nil }
	}
	mount := func() error {
		was := dir + ".was"
		if err := os.Rename(dir, was); err != nil {
			return err
		}
		defer os.RemoveAll(was)
		size, err := exec.Command("du", "-sm", was).Output()
		var used int
		if _, scanErr := fmt.Sscan(string(size), &used); err != nil || scanErr != nil {
			return errors.Join(err, scanErr)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := mountSmall(dir, 2*used+100); err != nil {
			return err
		}
		t.Cleanup(func() { _ = kill(); _ = exec.Command("umount", "--lazy", dir).Run() })
		return replaceFolder(was, dir)
	}
	for _, step := range []func() error{kill, mount, start} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	ballast := filepath.Join(dir, "ballast")
	return labFault{func() error { return fill(ballast) }, func() error {
		return errors.Join(os.Remove(ballast), kill(), start())
	}}
}

// fill writes a file until the disk is full.
func fill(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 1 << 12} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

// zookeeperReadOnly takes the right to write from everybody, and gives it back.
func zookeeperReadOnly(addr string) labFault {
	set := func(rights int32) func() error {
		return func() error {
			conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
			if err != nil {
				return err
			}
			defer conn.Close()
			return setRights(conn, "/snowflake", zk.WorldACL(rights))
		}
	}
	return labFault{set(zk.PermRead | zk.PermAdmin), set(zk.PermAll)}
}

func setRights(conn *zk.Conn, path string, acl []zk.ACL) error {
	if _, err := conn.SetACL(path, acl, -1); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	children, _, err := conn.Children(path)
	for _, child := range children {
		err = errors.Join(err, setRights(conn, path+"/"+child, acl))
	}
	return err
}

// natsReadOnly has the stream refuse messages of more than a byte, and take them again.
func natsReadOnly(t *testing.T, url string) labFault {
	set := func(most int32) func() error {
		return func() error {
			conn, err := nats.Connect(url)
			if err != nil {
				return err
			}
			defer conn.Close()
			stream, err := conn.JetStream()
			if err != nil {
				return err
			}
			info, err := stream.StreamInfo("LEAF")
			if err != nil {
				return err
			}
			info.Config.MaxMsgSize = most
			_, err = stream.UpdateStream(&info.Config)
			return err
		}
	}
	return labFault{set(1), set(-1)}
}

// sqliteBackup saves a file in use, without its log, and restores it.
func sqliteBackup(live, saved string) labFault {
	return labFault{func() error {
		db, err := sql.Open("sqlite", live)
		if err != nil {
			return err
		}
		defer db.Close()
		_ = os.Remove(saved)
		_, err = db.Exec("VACUUM INTO ?", saved)
		return err
	}, func() error {
		if err := removeBeside(live); err != nil {
			return err
		}
		text, err := os.ReadFile(saved)
		return errors.Join(err, os.WriteFile(live, text, 0o600))
	}}
}

func removeBeside(file string) error {
	for _, rest := range []string{"-wal", "-shm"} {
		if err := os.Remove(file + rest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fileFaults are what can happen to an SQLite file by name.
func fileFaults(t *testing.T, file string) map[string]labFault {
	other := filepath.Join(filepath.Dir(file), "other.db")
	move := func(from, to string) error {
		var err error
		for _, rest := range []string{"", "-wal", "-shm"} { // as mv does
			if e := os.Rename(from+rest, to+rest); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return err
	}
	away := func() error { return move(file, other) }
	back := func() error { return move(other, file) }
	return map[string]labFault{
		fileLinked: {func() error { return os.Link(file, other) }, func() error { return os.Remove(other) }},
		fileMoved:  {away, back},
		fileReplaced: {func() error {
			err := away()
			leafCommand(t, "init", "--store", "sqlite:"+file)
			leafCommand(t, "tag", "create", labTag, "--step", "100", "--store", "sqlite:"+file)
			return err
		}, func() error { return errors.Join(os.Remove(file), removeBeside(file), back()) }},
		fileBeside: {func() error { return removeBeside(file) }, func() error { return nil }},
	}
}
