package health

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	errStopping = errors.New("the server is stopping")
	errSilent   = errors.New("the store has not answered yet")
)

// StoreFacts are the state of the counters, read without asking their store.
type StoreFacts struct {
	Schemes  []string // whose IDs it counts
	Answered bool     // since the server started
	Err      error    // how the latest look at it ended
	Unfit    error    // why it cannot be used before it is mended, once that costs callers their IDs
	Member   error    // why this server's member of a cluster, which is the store, has ended
	InUse    bool     // some tag is

	Failing iter.Seq[segment.Stats] // the tags in use whose latest call failed
	Tags    iter.Seq[segment.Stats] // all in use, which may be very many: read only while the store is unavailable
}

// settled is how long calls must have been failing to count: until then callers wait.
const settled = time.Second

func (r *Report) judgeStore(f Facts) {
	s := f.Store
	if s.InUse {
		r.InUse = append(r.InUse, s.Schemes...)
	}
	add := func(name string, down, shared bool, err error) {
		r.Conditions = append(r.Conditions, Condition{Name: name, Schemes: s.Schemes, Down: down, Shared: shared, Err: err})
	}
	switch {
	case s.Unfit != nil:
		add(StoreUnfit, true, false, fmt.Errorf("the store cannot be used: %w", s.Unfit))
	case !s.Answered && cmp.Or(s.Member, s.Err) != nil:
		add(StoreSilent, true, false, fmt.Errorf("the store is unavailable: %w", cmp.Or(s.Member, s.Err)))
	case !s.Answered:
		add(StoreSilent, true, false, errSilent)
	default:
		if err, down := outage(f); err != nil {
			add(StoreFailing, down, s.Member == nil, err)
		}
	}
	damaged := slices.SortedFunc(s.damaged, func(a, b segment.Stats) int { return strings.Compare(a.Tag, b.Tag) })
	for _, t := range damaged[:min(len(damaged), maxDamaged)] {
		add(TagFailing, false, true, fmt.Errorf("tag %s, with %d IDs left: %w", t.Tag, t.Stock, t.Err))
	}
	if others := len(damaged) - maxDamaged; others > 0 {
		add(TagFailing, false, true, fmt.Errorf("and %d other tags", others))
	}
}

// maxDamaged bounds the tags with a condition of their own: a broken table breaks all of its tags.
const maxDamaged = 20

// damaged yields the tags with a problem of their own, which says nothing about their store.
func (s *StoreFacts) damaged(yield func(segment.Stats) bool) {
	for t := range s.Failing {
		if ownFault(t.Err) && !yield(t) {
			return
		}
	}
}

// ownFault reports an error that says something about one tag, and nothing about its store.
func ownFault(err error) bool {
	return errors.Is(err, leaf.ErrOverflow) || errors.Is(err, leaf.ErrUnsupported) || errors.Is(err, leaf.ErrInvalid)
}

// outage describes a failing store, and reports whether a tag in use still has IDs.
func outage(f Facts) (err error, down bool) {
	err = cmp.Or(f.Store.Member, f.Store.Err)
	var inUse, short int
	var since time.Time
	lasts := time.Duration(1<<63 - 1)
	for t := range f.Store.Failing {
		if !ownFault(t.Err) && f.Now.Sub(t.FailingSince) >= settled {
			if err == nil {
				err = t.Err
			}
			if since.IsZero() || t.FailingSince.Before(since) {
				since = t.FailingSince
			}
		}
	}
	if err == nil {
		return nil, false
	}
	for t := range f.Store.Tags {
		if !t.Loaded && t.Err == nil || t.Err != nil && ownFault(t.Err) {
			continue
		}
		inUse++
		if left := stockLasts(t); left < f.Least || t.Stock == 0 {
			short++
		} else {
			lasts = min(lasts, left)
		}
	}
	return fmt.Errorf("%s: %w", describe(since, inUse, short, lasts, f.Least), err), inUse > 0 && short == inUse
}

// describe says how an outage goes, without the words of the store.
func describe(since time.Time, inUse, short int, lasts, least time.Duration) string {
	text := "the store is unavailable"
	if !since.IsZero() {
		text += " since " + since.UTC().Format(time.RFC3339)
	}
	switch {
	case inUse == 0:
		return text + ", and no tag is in use"
	case short > 0:
		text += fmt.Sprintf("; of %d tags in use %d have IDs for less than %v", inUse, short, least)
	default:
		text += fmt.Sprintf("; all %d tags in use have IDs", inUse)
	}
	switch {
	case short == inUse || lasts == 1<<63-1:
		return text
	case short > 0:
		text += ", the others"
	}
	return text + fmt.Sprintf(" for %v or more", lasts.Round(time.Second))
}

// stockLasts returns how long the IDs in memory last at the recent rate; an idle tag's last for
// ever.
func stockLasts(t segment.Stats) time.Duration {
	if t.Rate == 0 && t.Stock > 0 {
		return 1<<63 - 1
	}
	return t.Lasts
}
