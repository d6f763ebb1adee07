package drivertest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/worker"
)

var registryMutants = []registryMutant{
	{"reads, then writes", onSwap(readThenSet), []string{"swap/racing creation", "swap/racing", "swap/chain"}},
	{"creates in two steps", onSwap(createInTwoSteps), []string{"swap/racing creation"}},
	{"wins every race", onSwap(winning), []string{"swap/racing creation", "swap/racing", "faults/cancelled during"}},
	{"has a lock for all cells", oneLock, []string{"swap/neighbours"}},
	{"compares nothing", comparing(func(_, _ worker.Record) bool { return true }), []string{"swap/other record", "swap/repeated", "record/permanent", "swap/to the same"}},
	{"compares terms", comparing(func(held, old worker.Record) bool { return held.Term == old.Term }), []string{"swap/other record"}},
	{"compares the lease", comparing(func(held, old worker.Record) bool {
		return held.Instance == old.Instance && held.Term == old.Term && held.Horizon.Equal(old.Horizon)
	}), []string{"swap/other record"}},
	{"ignores the instance", without(func(r *worker.Record) { r.Instance = worker.Instance{} }), []string{"swap/other record"}},
	{"ignores the term", without(func(r *worker.Record) { r.Term = 0 }), []string{"swap/other record"}},
	{"ignores the horizon", without(func(r *worker.Record) { r.Horizon = time.Time{} }), []string{"swap/other record"}},
	{"ignores the layouts", without(func(r *worker.Record) { r.Layouts = nil }), []string{"swap/other record"}},
	{"ignores the names of layouts", without(func(r *worker.Record) {
		for i := range r.Layouts {
			r.Layouts[i].Name = ""
		}
	}), []string{"swap/other record"}},
	{"ignores the owner", without(func(r *worker.Record) { r.Owner = "" }), []string{"swap/other record"}},
	{"folds case", without(capital), []string{"swap/other record"}},
	{"folds accents", without(func(r *worker.Record) { r.Owner = strings.ReplaceAll(r.Owner, "ö", "o") }), []string{"swap/other record"}},
	{"pads with spaces", without(func(r *worker.Record) { r.Owner = strings.TrimRight(r.Owner, " ") }), []string{"swap/other record"}},
	{"ignores the time", without(func(r *worker.Record) { r.Seen = time.Time{} }), []string{"swap/other record"}},
	{"ignores the offset", without(func(r *worker.Record) { r.Offset = 0 }), []string{"swap/other record"}},
	{"overwrites on creation", comparing(func(held, old worker.Record) bool { return old.IsZero() || held.Equal(old) }), []string{"swap/other record", "swap/repeated", "record/permanent", "swap/racing creation"}},
	{"creates whatever is replaced", comparing(func(held, old worker.Record) bool { return held.IsZero() || held.Equal(old) }), []string{"swap/other record", "swap/to the same"}},
	{"takes every version", comparing(func(held, old worker.Record) bool { return old.Version != "" || held.Equal(old) }), []string{"swap/version"}},
	{"compares records in spite of versions", comparing(func(held, old worker.Record) bool { return held.Equal(old) }), []string{"swap/version"}},
	{"returns the old version", onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			now, err := s.Swap(ctx, old, new)
			now.Version = cmp.Or(old.Version, now.Version)
			return now, err
		}
	}), []string{"swap/version"}},
	{"lists without versions", onList(func(all []worker.Record) []worker.Record {
		for i := range all {
			all[i].Version = ""
		}
		return all
	}), []string{"swap/version"}},
	{"takes what is there for done", onSwap(idempotent), []string{"swap/repeated"}},
	{"counts changed rows", onSwap(changedRows), []string{"swap/to the same"}},
	{"loses a conflict's name", onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			now, err := s.Swap(ctx, old, new)
			if errors.Is(err, worker.ErrConflict) {
				return worker.Record{}, errOther
			}
			return now, err
		}
	}), []string{"swap/other record", "swap/racing", "swap/repeated"}},
	{"writes before it compares", onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			now, err := s.Swap(ctx, old, new)
			if errors.Is(err, worker.ErrConflict) {
				s.force(new)
			}
			return now, err
		}
	}), []string{"swap/other record", "swap/racing"}},

	{"writes a cell by looking", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, load: func(ctx context.Context, id int64) (worker.Record, error) {
			if s.peek(id).IsZero() {
				s.force(never(id))
			}
			return s.Load(ctx, id)
		}}
	}, []string{"swap/absent", "swap/create", "list/all"}},
	{"has no worker in an absent record", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, load: func(ctx context.Context, id int64) (worker.Record, error) {
			r, err := s.Load(ctx, id)
			if r.IsZero() {
				r.Worker = 0
			}
			return r, err
		}}
	}, []string{"swap/absent"}},
	{"writes the neighbour too", onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			now, err := s.Swap(ctx, old, new)
			if next := new; err == nil && s.peek(new.Worker+1).IsZero() {
				next.Worker++
				s.force(next)
			}
			return now, err
		}
	}), []string{"swap/create", "list/all"}},
	{"replaces some fields", onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			if new.Owner == "" {
				new.Owner = old.Owner
			}
			return s.Swap(ctx, old, new)
		}
	}), []string{"swap/replace"}},
	{"mixes workers", unchecked(func(old, new worker.Record) bool { return old.Worker != new.Worker }), []string{"swap/invalid"}},
	{"takes negative workers", unchecked(func(_, new worker.Record) bool { return new.Worker < 0 }), []string{"swap/invalid"}},
	{"empties cells", unchecked(func(old, new worker.Record) bool { return new.IsZero() && !old.IsZero() }), []string{"swap/invalid"}},

	{"has horizons in 32 bits", keeping(func(r *worker.Record) { r.Horizon = time.UnixMilli(int64(int32(r.Horizon.UnixMilli()))) }), []string{"record/round trip", "swap/create"}},
	{"has numbers in floating point", keeping(func(r *worker.Record) {
		if ms := r.Seen.UnixMilli(); ms < 1<<62 {
			r.Seen = time.UnixMilli(int64(float64(ms)))
		}
	}), []string{"record/round trip"}},
	{"has no floors", leasing(keeping(func(r *worker.Record) { r.Floor = time.Time{} })), []string{"record/round trip"}},
	{"has no pools", leasing(keeping(func(r *worker.Record) { r.Pool = worker.Pool{} })), []string{"record/round trip", "pools"}},
	{"cuts long owners", keeping(func(r *worker.Record) { r.Owner = r.Owner[:min(255, len(r.Owner))] }), []string{"record/round trip"}},
	{"cuts many layouts", keeping(func(r *worker.Record) { r.Layouts = r.Layouts[:min(16, len(r.Layouts))] }), []string{"record/round trip"}},
	{"trims owners", keeping(func(r *worker.Record) { r.Owner = strings.TrimSpace(r.Owner) }), []string{"record/round trip"}},
	{"writes capitals", keeping(capital), []string{"record/round trip", "swap/create"}},
	{"has no other plane", keeping(func(r *worker.Record) { r.Owner = strings.ReplaceAll(r.Owner, "😀", "????") }), []string{"record/round trip"}},
	{"has workers in 10 bits", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, swap: func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			if new.Worker > 1023 {
				return worker.Record{}, errOther
			}
			return s.Swap(ctx, old, new)
		}}
	}, []string{"record/worker IDs", "faults/reopen"}},

	{"deletes what has no holder", onSwap(dropping), []string{"record/permanent"}},
	{"caches records", caching, []string{"record/fresh"}},
	{"caches listings", cachingList, []string{"record/fresh"}},
	{"writes behind", writingBehind, []string{"record/fresh", "faults/reopen", "swap/racing"}},
	{"keeps its state to itself", forked, []string{"record/fresh", "faults/reopen", "swap/racing creation"}},

	{"overwrites what it cannot read", onSwap(overwriting), []string{"record/newer", "record/garbage"}},
	{"shows what it cannot read as empty", lenient, []string{"record/newer", "record/garbage"}},
	{"lists what it can read", skipping, []string{"record/newer", "record/garbage"}},
	{"does not name the worker", nameless, []string{"record/newer", "record/garbage"}},
	{"hides that a record is newer", opaque, []string{"record/newer"}},

	{"lists by digits", onList(func(all []worker.Record) []worker.Record {
		slices.Reverse(all)
		return all
	}), []string{"list/all", "list/many", "record/worker IDs"}},
	{"lists one page", onList(func(all []worker.Record) []worker.Record { return all[:min(100, len(all))] }), []string{"list/many"}},
	{"lists twice", onList(func(all []worker.Record) []worker.Record {
		if len(all) > 1 {
			all = append(all, all[len(all)-1])
		}
		return all
	}), []string{"list/all", "list/many"}},

	{"has a clock without a zone", clockOf(func() time.Time { return time.Now().Add(-8 * time.Hour) }), []string{"clock"}},
	{"has a clock that goes backwards", clockOf(backwards()), []string{"clock"}},
	{"has a clock that stands at 1970", clockOf(func() time.Time { return time.Unix(0, 0) }), []string{"clock"}},

	{"ignores the context", ignoring, []string{"faults/cancelled before"}},
	{"writes afterwards", onSwap(afterwards), []string{"faults/cancelled before"}},
	{"writes late, whatever is there", onSwap(late), []string{"faults/cancelled before"}},
	{"undoes what was cut short", onSwap(undoing), []string{"faults/cancelled during"}},
	{"forgets what was cut short", onSwap(forgetting), []string{"faults/cancelled between"}},
	{"hangs on an ended context", onSwap(hanging), []string{"faults/cancelled before"}},
	{"does nothing on Close", func(s *fakeRegistry) worker.Registry {
		return struct {
			*fakeRegistry
			closer
		}{fakeRegistry: s}
	}, []string{"faults/use after Close"}},

	{"watches only what was written before", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, watch: func(ctx context.Context, id int64) (<-chan struct{}, error) {
			if s.peek(id).IsZero() {
				return nil, errOther
			}
			return s.Watch(ctx, id)
		}}
	}, []string{"watch/foreign write"}},
	{"watches for ever", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, watch: func(context.Context, int64) (<-chan struct{}, error) { return make(chan struct{}), nil }}
	}, []string{"watch/cancelled before"}},
	{"cannot tell whether it loses writes", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, epoch: func(context.Context) (worker.ServerEpoch, error) { return worker.ServerEpoch{}, errOther }}
	}, []string{"epoch"}},
	{"names an epoch for each client", func(s *fakeRegistry) worker.Registry {
		name := rand.Text()
		return &client{fakeRegistry: s, epoch: func(context.Context) (worker.ServerEpoch, error) {
			return worker.ServerEpoch{Lossy: true, Incarnation: name}, nil
		}}
	}, []string{"epoch"}},
	{"names an epoch for each write", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, epoch: func(context.Context) (worker.ServerEpoch, error) {
			return worker.ServerEpoch{Lossy: true, Incarnation: s.peek(7).Instance.String()}, nil
		}}
	}, []string{"epoch"}},
	{"ignores the incarnation", without(func(r *worker.Record) { r.Incarnation = "" }), []string{"swap/other record"}},
	{"ignores since when", without(func(r *worker.Record) { r.Since = time.Time{} }), []string{"swap/other record"}},
	{"ignores the claim delay", without(func(r *worker.Record) { r.ClaimDelay = 0 }), []string{"swap/other record"}},
	{"assigns what the layouts do not hold", func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, assign: func(_ context.Context, max int64) (int64, error) { return max + 1, nil }}
	}, []string{"assign"}},
}

// closer is a Close that does nothing at all.
type closer struct{}

func (closer) Close() error { return nil }
