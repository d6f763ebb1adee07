package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

// usesUpWorkers reports whether Workers names the table WORKER_NODE of uid-generator,
// where each start of a server uses up a worker ID.
func (c Config) usesUpWorkers() bool {
	query, err := url.ParseQuery(c.Workers[strings.LastIndexByte(c.Workers, '?')+1:])
	return err == nil && query.Get("layout") == "worker_node"
}

// ServesUID reports whether the scheme uid is served.
func (c Config) ServesUID() bool {
	wanted := c.Store == "" && c.Workers == "" || c.usesUpWorkers() // the embedded database, or that table
	return c.UID.Enable == EnableTrue || c.UID.Enable == EnableAuto && wanted && c.UIDConflict() == ""
}

// leastWorkers is the number of worker IDs that snowflake needs next to uid, which keeps the worker
// ID of a killed server for a minute.
const leastWorkers = 256

// UIDConflict returns the reason why uid would disturb snowflake; "": it would not.
func (c Config) UIDConflict() string {
	if !c.Snowflake.Enable {
		return ""
	}
	uid := c.UID.layout()
	for _, l := range c.Snowflake.Served() {
		switch {
		case l.Name == c.UID.Layout:
			return fmt.Sprintf("snowflake has a layout %s too: give that of uid another name", l.Name)
		case l.Record("") == uid.Record(""):
			return fmt.Sprintf("the layout %s of snowflake has the same values: both would issue the same IDs", l.Name)
		case l.MaxWorker()+1 < leastWorkers && c.UID.Enable == EnableAuto:
			return fmt.Sprintf("the layout %s of snowflake has %d worker IDs, and uid would keep those of killed servers for a minute", l.Name,
				l.MaxWorker()+1)
		}
	}
	return ""
}

func (u UID) layout() snowflake.Layout {
	return snowflake.Layout{Epoch: u.Epoch, Tick: time.Second, TimeBits: u.TimeBits, WorkerBits: u.WorkerBits, SequenceBits: u.SeqBits}
}

// Served returns the served layout. u must be valid.
func (u UID) Served() issuer.Layouts {
	l := issuer.NamedLayout{Name: u.Layout, Layout: u.layout(), Scheme: issuer.UID}
	if u.Mode == ModeDefault {
		// An idle second spreads over shards, and still has nearly all of its IDs.
		l.RandomStart = max((l.MaxSequence()+1)/16, 1)
	}
	return issuer.Layouts{l}
}

// Generators returns how the IDs are made. u must be valid.
func (u UID) Generators() snowflake.Options {
	o := snowflake.Options{MaxAhead: -1, Wait: u.Wait, Reject: u.RejectedTake == RejectedError}
	if u.Mode == ModeCached {
		o.MaxAhead = u.MaxAhead
		o.Reserve = snowflake.Reserve{
			Size:     1 << min(u.SeqBits+u.BoostPower, 62),
			Refill:   u.PaddingFactor,
			Interval: u.ScheduleInterval,
		}
	}
	return o
}
