package datadir_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/datadir"
)

func TestLockMachine(t *testing.T) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	first, err := datadir.LockMachine(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.LockMachine(name); err == nil || !strings.Contains(err.Error(), name+" is in use by another process on this machine") {
		t.Errorf("while it is held: %v", err)
	}
	other, err := datadir.LockMachine(name + "0")
	if err != nil {
		t.Fatalf("another name: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	again, err := datadir.LockMachine(name)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	_, _ = again.Close(), other.Close()
}
