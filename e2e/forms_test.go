package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/textid"
)

// TestForms has ten clients take texts of a tag, and two of them its plain numbers, from two servers
// and a relay, while the servers are killed in turn. No two texts are alike, and each is that of a
// unique number.
func TestForms(t *testing.T) {
	const template = "T-{n:base32:8}{check:mod97-10}"
	store := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
	leafCommand(t, "init", "--store", store)
	leafCommand(t, "tag", "create", "ticket", "--step", "100", "--form", template, "--store", store)
	form, err := textid.New(template)
	if err != nil {
		t.Fatal(err)
	}
	addrs := []string{loopback(freePort(t)), loopback(freePort(t))}
	edge := loopback(freePort(t))
	serveAt := func(addr, store string) *server {
		return serveBy(t, leafBinary, "serve", "--listen", addr, "--resp", "off", "--store", store, "--data", filepath.Join(t.TempDir(), "data"))
	}
	servers := []*server{serveAt(addrs[0], store), serveAt(addrs[1], store)}
	serveAt(edge, "leaf://"+addrs[0]+","+addrs[1])
	ids, err := sdk.New("http://"+addrs[0]+","+addrs[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close(t.Context())

	l := &formLoad{t: t, seen: map[int64]string{}}
	for _, addr := range []string{addrs[0], addrs[1], edge, edge, addrs[0], addrs[1]} {
		l.client(addr, form.Decode, v1Texts(addr, 3, "&form=1"))
	}
	for range 2 {
		l.client(edge, plainNumber, v1Texts(edge, 2, ""))
		l.client("the library", form.Decode, func() ([]string, error) {
			a, err := ids.Issue(context.Background(), sdk.Request{Key: "ticket", Form: true, Count: 4})
			return a.Texts, err
		})
	}
	for round := range 4 {
		time.Sleep(500 * time.Millisecond)
		servers[round%2].kill()
		servers[round%2] = serveAt(addrs[round%2], store)
	}
	l.over.Store(true)
	l.clients.Wait()
	if len(l.seen) < 1000 {
		t.Errorf("only %d numbers", len(l.seen))
	}
	t.Logf("%d texts, %d calls failed", len(l.seen), l.failed.Load())
}

// A formLoad are clients of a tag with a form.
type formLoad struct {
	t       *testing.T
	over    atomic.Bool
	failed  atomic.Int64
	clients sync.WaitGroup

	mu   sync.Mutex
	seen map[int64]string // who got the number
}

// client calls take until the end; read returns the number of a text.
func (l *formLoad) client(of string, read func(string) (textid.Number, error), take func() ([]string, error)) {
	l.clients.Go(func() {
		for !l.over.Load() {
			texts, err := take()
			if err != nil {
				l.failed.Add(1)
				time.Sleep(10 * time.Millisecond)
			}
			for _, text := range texts {
				v, err := read(text)
				l.mu.Lock()
				if other := l.seen[v.N]; err != nil || other != "" {
					l.t.Errorf("%s gave %q, before: %q, error %v", of, text, other, err)
				}
				l.seen[v.N] = fmt.Sprintf("%s by %s", text, of)
				l.mu.Unlock()
			}
		}
	})
}

func plainNumber(text string) (v textid.Number, err error) {
	v.N, err = strconv.ParseInt(text, 10, 64)
	return v, err
}

// v1Texts returns a call for IDs as they are written.
func v1Texts(addr string, n int, more string) func() ([]string, error) {
	return func() ([]string, error) {
		_, body, err := v1Get(addr, "ticket", "", n, more)
		var answer struct {
			IDs []string `json:"ids"`
		}
		if err == nil {
			err = json.Unmarshal(body, &answer)
		}
		return answer.IDs, err
	}
}
