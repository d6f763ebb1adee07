package snowflake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// A Node issues the IDs of one or several layouts under one leased worker ID. It
// implements [leaf.Generator] for its first layout.
type Node struct {
	keeper     *worker.Keeper
	first      *Generator
	generators map[string]*Generator
	once       sync.Once // Start
	running    context.Context
	stop       context.CancelFunc // ends running
	stopped    chan struct{}      // closed when Run has returned; then err is set
	err        error
}

// NodeOptions configures a [Node]. The zero value of a field means its default.
type NodeOptions struct {
	// Layouts are served under the worker ID; default: the preset leaf.
	Layouts []NodeLayout

	// Keeper configures the lease, see [worker.Options.State] for restarts. The node sets
	// Layouts, LeaseUsers, MaxAhead and LeastAhead itself. Clock is also that of the
	// generators; Owner is by default the host name and the process ID.
	Keeper worker.Options
}

// A NodeLayout is a layout that a [Node] serves.
type NodeLayout struct {
	// Name is the key of the IDs. Under one registry it always means the same layout.
	Name string

	Layout

	// Options configures the generator; the clock is the node's.
	Options Options
}

// Open claims a worker ID from reg and returns a node that may issue IDs. It waits until a worker
// ID is free and usable, or until ctx ends, also while reg does not exist or does not answer. The
// Logger of opts.Keeper gets the reason, and the error has it if ctx ends. [Node.Close] hands the
// worker ID back; reg must stay open until then.
func Open(ctx context.Context, reg worker.Registry, opts *NodeOptions) (*Node, error) {
	n, err := NewNode(reg, opts)
	if err != nil {
		return nil, err
	}
	n.Start()
	for err := n.keeper.Err(); err != nil; err = n.keeper.Err() {
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for a worker ID: %w: %w", context.Cause(ctx), err), n.Close(context.WithoutCancel(ctx)))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return n, nil
}

// NewNode returns a node that issues nothing before [Node.Start]. The error wraps
// [leaf.ErrInvalid] if a layout or an option is not valid, or two layouts have one name.
func NewNode(reg worker.Registry, opts *NodeOptions) (*Node, error) {
	o := NodeOptions{}
	if opts != nil {
		o = *opts
	}
	if len(o.Layouts) == 0 {
		preset, _ := Preset("leaf")
		o.Layouts = []NodeLayout{{Name: "leaf", Layout: preset}}
	}
	k := o.Keeper
	k.Layouts, k.LeaseUsers, k.MaxAhead, k.LeastAhead = nil, nil, 0, 0
	k.Clock = cmp.Or(k.Clock, worker.NewClock())
	k.Owner = cmp.Or(k.Owner, processName())
	n := &Node{generators: make(map[string]*Generator, len(o.Layouts)), stopped: make(chan struct{})}
	n.running, n.stop = context.WithCancel(context.Background())
	shared := make(map[worker.ServedLayout]*Generator, len(o.Layouts))
	for _, l := range o.Layouts {
		values := l.Record("") // two generators of equal layouts would issue the same IDs
		if shared[values] == nil {
			l.Options.Clock = k.Clock
			g, err := New(l.Layout, &l.Options)
			if err != nil {
				return nil, fmt.Errorf("layout %s: %w", l.Name, err)
			}
			shared[values], k.LeaseUsers = g, append(k.LeaseUsers, g)
			ahead := max(g.opts.MaxAhead, time.Millisecond)
			k.MaxAhead, k.LeastAhead = max(k.MaxAhead, ahead), min(cmp.Or(k.LeastAhead, ahead), ahead)
		}
		n.generators[l.Name] = shared[values]
		k.Layouts = append(k.Layouts, l.Record(l.Name))
	}
	n.first = n.generators[o.Layouts[0].Name]
	var err error
	if n.keeper, err = worker.NewKeeper(reg, &k); err != nil {
		return nil, err
	}
	return n, nil
}

func processName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s pid %d", cmp.Or(host, "unknown"), os.Getpid())
}

// Start has the node claim a worker ID, and keep one until [Node.Close]. It returns at once;
// calls for IDs wait for the worker ID as long as [Options.Wait] says. Open has called it;
// a second call does nothing, nor does one after Close.
func (n *Node) Start() { n.once.Do(n.start) }

func (n *Node) start() {
	go func() {
		defer close(n.stopped)
		n.err = n.keeper.Run(n.running)
	}()
}

// Close ends the node and hands the worker ID back. If ctx ends first, Close returns its error, and
// the node still hands back. An error reports that the worker ID was not handed back in time; its
// lease then runs out by itself.
func (n *Node) Close(ctx context.Context) error {
	n.stop()
	n.Start() // the keeper of an unstarted node gives its state file up
	select {
	case <-n.stopped:
		return n.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Generator returns the generator of the layout with that name, or nil. Layouts with equal values
// share the generator of the first of them.
func (n *Node) Generator(name string) *Generator { return n.generators[name] }

// Keeper returns the keeper of the lease, which tells its status.
func (n *Node) Keeper() *worker.Keeper { return n.keeper }

// Next returns one ID of the first layout; see [Generator.Next].
func (n *Node) Next(ctx context.Context) (int64, error) {
	id, err := n.first.Next(ctx)
	if err != nil {
		return 0, n.Explain(err)
	}
	return id, nil
}

// Take appends n IDs of the first layout to dst; see [Generator.Take].
func (n *Node) Take(ctx context.Context, dst []leaf.Range, count int) ([]leaf.Range, error) {
	dst, err := n.first.Take(ctx, dst, count)
	if err != nil {
		return dst, n.Explain(err)
	}
	return dst, nil
}

// Explain adds to an error of a generator why the worker ID may not be used yet. The
// generator only knows from when on.
func (n *Node) Explain(err error) error {
	if !errors.Is(err, leaf.ErrClock) {
		return err
	}
	if why := n.keeper.Err(); errors.Is(why, worker.ErrWaiting) {
		return fmt.Errorf("%w: %w", leaf.ErrNoLease, why)
	}
	return err
}
