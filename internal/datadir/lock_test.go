package datadir_test

import (
	"strings"
	"testing"
)

func TestLockOfAnotherFile(t *testing.T) {
	path := t.TempDir()
	a, b := open(t, path), open(t, path)
	f, err := a.Lock("static-7")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lock("static-7"); err == nil || !strings.Contains(err.Error(), "static-7 is in use by another process") {
		t.Errorf("got error %v", err)
	}
	if g, err := b.Lock("static-8"); err != nil {
		t.Error(err)
	} else {
		g.Close()
	}
	f.Close()
	g, err := b.Lock("static-7")
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}
