package frontend_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A reader is a client that reads when it is let, and may go after the first piece.
type reader struct {
	http.ResponseWriter
	header http.Header
	reads  chan struct{} // nil: at once
	gone   error
	got    bytes.Buffer
}

func (r *reader) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *reader) Write(p []byte) (int, error) {
	if r.reads != nil {
		<-r.reads
	}
	if r.gone != nil && r.got.Len() > 0 {
		return 0, r.gone
	}
	return r.got.Write(p)
}

// large takes many pieces.
var large = issuer.IDs{Ranges: []leaf.Range{{Start: 1_000_000, End: 1_010_000}}}

const largeSize = 10_000 * len("1000000\n")

func write(ctx context.Context, o *frontend.Options, r *reader, ids issuer.IDs) {
	o.WriteIDs(r, new(http.Request).WithContext(ctx), ids, "", "\n", "\n")
}

// While as many answers are made as may be, others wait with more than their first piece; the end
// of a request's context ends its wait, not its answer.
func TestWritesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &frontend.Options{Batches: make(frontend.BatchLimiter, 1)}
		release := make(chan struct{})
		go func() { _ = o.Batches.Do(t.Context(), func() error { <-release; return nil }) }()
		synctest.Wait()

		var small, waits, stopped reader
		write(t.Context(), o, &small, issuer.IDs{Ranges: []leaf.Range{{Start: 1, End: 4}}})
		if got := small.got.String(); got != "1\n2\n3\n" {
			t.Errorf("a small answer: %q", got)
		}
		go write(t.Context(), o, &waits, large)
		ctx, cancel := context.WithCancel(t.Context())
		go write(ctx, o, &stopped, large)
		synctest.Wait()
		for _, r := range []*reader{&waits, &stopped} {
			if n := r.got.Len(); n == 0 || n > 4096 {
				t.Errorf("%d bytes were made without a turn", n)
			}
		}
		cancel()
		synctest.Wait()
		if n := stopped.got.Len(); n != largeSize {
			t.Errorf("%d of %d bytes after the end of the context", n, largeSize)
		}
		close(release)
		synctest.Wait()
		if text := waits.got.String(); len(text) != largeSize || !strings.HasSuffix(text, "\n1009998\n1009999\n") {
			t.Errorf("%d of %d bytes in the end", len(text), largeSize)
		}
	})
}

// A client that does not read has no turn meanwhile, and a vanished one returns its turn.
func TestNoTurnWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &frontend.Options{Batches: make(frontend.BatchLimiter, 1)}
		slow := &reader{reads: make(chan struct{})}
		go write(t.Context(), o, slow, large)
		for range 3 {
			synctest.Wait() // it writes
			var other, gone reader
			gone.gone = errors.New("connection reset")
			write(t.Context(), o, &gone, large)
			write(t.Context(), o, &other, large)
			if n := other.got.Len(); n != largeSize {
				t.Errorf("%d of %d bytes", n, largeSize)
			}
			slow.reads <- struct{}{}
		}
		close(slow.reads)
		synctest.Wait()
		if n := slow.got.Len(); n != largeSize || len(o.Batches) != 0 {
			t.Errorf("%d of %d bytes, %d turns", n, largeSize, len(o.Batches))
		}
	})
}

// Many texts are made in turn.
func TestMakesTextsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &frontend.Options{Batches: make(frontend.BatchLimiter, 1)}
		o.Batches <- struct{}{}
		few, _ := issuer.UUIDs{}.Take(t.Context(), "v4", frontend.Few)
		many, _ := issuer.UUIDs{}.Take(t.Context(), "v4", 10_000)
		if texts, err := o.MakeTexts(t.Context(), few); err != nil || len(texts) != frontend.Few {
			t.Errorf("%d texts, %v", len(texts), err)
		}
		taken := make(chan int)
		go func() {
			texts, _ := o.MakeTexts(t.Context(), many)
			taken <- len(texts)
		}()
		synctest.Wait()
		select {
		case <-taken:
			t.Error("made without a turn")
		default:
		}
		<-o.Batches
		if n := <-taken; n != 10_000 {
			t.Errorf("%d UUIDs", n)
		}
	})
}
