package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

const (
	// commitTimeout bounds one round of a line, however many transactions it takes.
	commitTimeout = 2 * mostPatience

	// One who comes too late tries again at once, by what he is told, which is as good a
	// chance as that of the one who was faster; after so many attempts he waits.
	attempts = 3

	// Those who want the same counter spread over at most so many times what a reading
	// and a writing take, and no longer than mostSpread.
	mostFold   = 32
	mostSpread = time.Second

	// calm is how long without a round has a spread forgotten.
	calm = mostSpread
)

// A line is the calls of this process that wait for one tag. One goroutine at a time
// serves it: it takes all calls that wait, moves the counter by what they want
// together, and deals the range out among them.
type line struct {
	waiting []*call // guarded by Store.mu
	served  bool    // by a goroutine; guarded by Store.mu

	// What follows is that goroutine's.
	key    string
	late   string        // the key of the mark of those who came too late
	known  held          // what the counter's key was last seen to hold
	spread time.Duration // 0: nobody else wanted the counter lately
	pace   time.Duration // what a reading and a writing take of late, where all is well
	last   time.Time     // the end of the round before
}

// A call is one Advance that waits in a line.
type call struct {
	ctx  context.Context
	n    int64
	done chan outcome // of one
}

type outcome struct {
	grant segment.Grant
	err   error
}

// join puts a call into the line of its tag.
func (s *Store) join(tag string, c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return leaf.ErrClosed
	}
	l := s.lines[tag]
	if l == nil {
		l = &line{key: s.client.folder + tag, late: s.client.late(tag)}
		s.lines[tag] = l
	}
	l.waiting = append(l.waiting, c)
	if !l.served {
		l.served = true
		s.work.Go(func() { s.serve(tag, l) })
	}
	return nil
}

// next takes the calls that wait, without those whose callers have left. Where there
// are none it ends the service; a line of a tag that may not exist is forgotten.
func (s *Store) next(tag string, l *line) []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.DeleteFunc(l.waiting, func(c *call) bool { return c.ctx.Err() != nil })
	l.waiting = nil
	if len(calls) == 0 {
		l.served = false
		if l.known.revision == 0 {
			delete(s.lines, tag)
		}
	}
	return calls
}

func (s *Store) serve(tag string, l *line) {
	if time.Since(l.last) > calm {
		l.spread = 0
	}
	for calls := s.next(tag, l); len(calls) > 0; calls = s.next(tag, l) {
		outcomes, err := s.round(l, calls)
		if l.last = time.Now(); err != nil && s.client.ctx.Err() != nil {
			err = leaf.ErrClosed
		}
		for i, c := range calls {
			if err != nil {
				c.done <- outcome{err: err}
			} else {
				c.done <- outcomes[i]
			}
		}
	}
}

// round moves the counter for all calls at once. Its error is the error of all of
// them: where it is not known what became of the transaction the range is lost.
func (s *Store) round(l *line, calls []*call) ([]outcome, error) {
	ctx, cancel := context.WithTimeout(s.client.ctx, commitTimeout)
	defer cancel()
	look := l.spread > 0 || l.known.revision == 0 || !s.client.connected()
	for attempt := 1; ; attempt++ {
		if look {
			// One who waits with what he has read comes too late: wait first.
			if err := l.pause(ctx); err != nil {
				return nil, fmt.Errorf("too many want the counter at once: %w", err)
			}
			if !slices.ContainsFunc(calls, func(c *call) bool { return c.ctx.Err() == nil }) {
				return nil, context.Canceled // nobody is left to be told
			}
			if err := l.look(ctx, s.client); err != nil {
				return nil, err
			}
		}
		outcomes, done, err := l.move(ctx, s.client, calls, look || attempt > 1)
		if done || err != nil {
			return outcomes, err
		}
		look = attempt%attempts == 0 || l.known.revision == 0
	}
}

// pause waits for a random part of the spread.
func (l *line) pause(ctx context.Context) error {
	if l.spread == 0 {
		return nil
	}
	timer := time.NewTimer(rand.N(l.spread))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look reads what the key holds.
func (l *line) look(ctx context.Context, c *client) (err error) {
	l.known, err = c.load(ctx, l.key)
	return err
}

// move makes one attempt to move the counter from what is known, which was seen in
// this round if it is fresh. It is not done if somebody else has moved it.
func (l *line) move(ctx context.Context, c *client, calls []*call, fresh bool) (outcomes []outcome, done bool, err error) {
	state, err := readTag(l.key, l.known)
	if err != nil {
		l.known = held{}
		return nil, false, err
	}
	was := state.MaxID
	for _, call := range calls {
		grant, err := state.advance(call.n)
		outcomes = append(outcomes, outcome{grant, err})
	}
	if state.MaxID == was { // nobody gets anything, which has to be so now
		l.known = held{}
		return outcomes, fresh, nil
	}
	text := state.written()
	t := txn{then: []clientv3.Op{clientv3.OpPut(l.key, text), clientv3.OpDelete(l.late, clientv3.WithPrevKV())}}
	if fresh { // else it was another one's turn, and it is no sign of a crowd
		t.otherwise = []clientv3.Op{clientv3.OpPut(l.late, ""), clientv3.OpGet(l.late)}
	}
	began := time.Now()
	moved, now, answers, err := c.change(ctx, l.key, l.known, text, t)
	if err != nil {
		l.known = held{}
		return nil, false, err
	}
	l.known = now
	l.pace += (2*time.Since(began) - l.pace) / 4
	if moved {
		for i := range outcomes {
			outcomes[i].grant.Server, outcomes[i].grant.Version = c.server(), now.version()
		}
		l.adapt(answers[1].GetResponseDeleteRange().GetPrevKvs())
	} else if fresh {
		l.adapt(answers[1].GetResponseRange().GetKvs())
	}
	return outcomes, moved, nil
}

// adapt goes by the mark: each one who comes too late writes it, and who succeeds
// deletes it, so that its version tells how many came too late since. That is so for
// all alike: were the spread to go by one's own luck, those in luck would have no
// spread and leave nothing to the others.
func (l *line) adapt(mark []*mvccpb.KeyValue) {
	if len(mark) > 0 && mark[0].Version > 1 {
		l.widen()
	} else {
		l.narrow()
	}
}

func (l *line) widen() {
	pace := max(l.pace, time.Millisecond)
	l.spread = min(max(2*l.spread, pace), mostFold*pace, mostSpread)
}

func (l *line) narrow() {
	if l.spread /= 2; l.spread < l.pace {
		l.spread = 0
	}
}
