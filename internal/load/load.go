package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Target is a server as one protocol reaches it.
type Target interface {
	// Open returns a way to send requests that no other client uses. It connects when
	// it is first used, and again when a connection has broken.
	Open() Conn
}

// A Conn sends requests.
type Conn interface {
	// Do sends all calls before it reads the first answer, and stores the answers or errors in
	// them. It returns within the time-out of its target, and at once at the end of ctx.
	Do(ctx context.Context, calls []*Call)
	Close() error
}

// A Call is one request and its answer.
type Call struct {
	Key   string
	Count int // number of requested IDs

	IDs IDs
	Err error

	key int // index of the key in a run
}

// A Key is the key of requests.
type Key struct {
	Name string

	// Space names the ID space. Keys of one space may share no ID.
	Space string
}

// Options configures a run.
type Options struct {
	Target   Target
	Keys     []Key // asked for in turn; at least one
	Count    int   // IDs a request
	Clients  int
	Pipeline int // requests that a client sends at once

	// Rate is how many requests are due each second; 0: the loop is closed.
	Rate float64

	WarmUp   time.Duration // the load before anything is measured
	Duration time.Duration // of the measurement

	// Memory bounds the memory of the comparison, in bytes.
	Memory int64

	// Progress is called a few times a second, if it is not nil.
	Progress func(Progress)

	sleep func(time.Duration) // nil: the best this system has
}

// A Progress is how far a run has come.
type Progress struct {
	Elapsed  time.Duration // of WarmUp and Duration together
	WarmUp   bool          // nothing is measured yet
	Requests int64         // answered, those of the warm-up included
	Failed   int64         // of them
}

// interval is how often Progress is called.
const interval = 200 * time.Millisecond

// Run asks once for each key, and then puts load on the target until the duration is over
// or ctx ends, which ends it early and is no error. It returns an error if one of the first
// requests fails.
func Run(ctx context.Context, opts Options) (*Result, error) {
	r := newRun(opts)
	defer r.checker.close()
	if err := r.first(ctx); err != nil {
		return nil, err
	}
	r.start = time.Now()
	r.due = make(chan time.Duration, opts.Clients)
	over, cancel := context.WithTimeout(ctx, r.end())
	defer cancel()
	r.over = over

	var clients, others sync.WaitGroup
	for i := range opts.Clients {
		clients.Go(func() { r.newClient(i).loop(ctx) })
	}
	if opts.Rate > 0 {
		others.Go(r.pace)
	}
	stop := make(chan struct{})
	if opts.Progress != nil {
		others.Go(func() { r.report(stop) })
	}
	clients.Wait()
	close(stop)
	others.Wait()
	return r.result(ctx.Err() != nil), nil
}

type run struct {
	opts    Options
	checker *checker
	records []*record // shared by the clients in turn

	start time.Time
	over  context.Context    // ends when no further request is sent
	due   chan time.Duration // open loop: times at which requests are due
}

// recordCount bounds the memory of the histograms, one for each record.
const recordCount = 16

func newRun(opts Options) *run {
	r := &run{opts: opts, checker: newChecker(opts.Keys, opts.Memory)}
	for range min(opts.Clients, recordCount) {
		r.records = append(r.records, newRecord())
	}
	return r
}

// first asks once for each key, to report a wrong key or address at once.
func (r *run) first(ctx context.Context) error {
	conn := r.opts.Target.Open()
	defer conn.Close()
	feed := r.checker.feed()
	defer feed.flush()
	for i, key := range r.opts.Keys {
		call := &Call{Key: key.Name, Count: r.opts.Count}
		Do(ctx, conn, []*Call{call})
		if call.Err != nil {
			return fmt.Errorf("the first request failed: key %q: %w", key.Name, call.Err)
		}
		feed.add(i, &call.IDs)
	}
	return nil
}

// Do makes the calls, and checks that each brought as many IDs as it asked for.
func Do(ctx context.Context, conn Conn, calls []*Call) {
	conn.Do(ctx, calls)
	for _, c := range calls {
		if got := c.IDs.Len(); c.Err == nil && got != int64(c.Count) {
			c.Err = failure(wrongNumber, fmt.Sprintf("%d instead of %d", got, c.Count))
		}
	}
}

// end returns the end of an uninterrupted run.
func (r *run) end() time.Duration { return r.opts.WarmUp + r.opts.Duration }

func (r *run) elapsed() time.Duration { return time.Since(r.start) }

// report calls Progress until stop is closed.
func (r *run) report(stop <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		p := Progress{Elapsed: r.elapsed()}
		p.WarmUp = p.Elapsed < r.opts.WarmUp
		for _, rec := range r.records {
			answered, failed := rec.progress()
			p.Requests += answered
			p.Failed += failed
		}
		r.opts.Progress(p)
	}
}
