package segment

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// ErrPeriodic refuses a call that knows nothing of periods for a tag whose numbers start again with
// each one. It also wraps [ErrStrict]: such a tag has no stock.
var ErrPeriodic error = periodicError{}

type periodicError struct{}

func (periodicError) Error() string {
	return "the numbers of the tag start again with each period: they come one call at a time"
}
func (periodicError) Is(target error) bool { return target == ErrStrict }

// A Period is one of a tag's, with a counter of its own.
type Period struct {
	Name  string // its first day: 2026-11-23
	MaxID int64  // one past its highest number
}

// A PeriodCatalog is a [Catalog] of tags with periods.
type PeriodCatalog interface {
	// Periods lists a tag's periods with a counter, the first one first.
	Periods(ctx context.Context, tag string) ([]Period, error)

	// RemovePeriod removes a past period, see [TagOptions.CheckRemoval]. The store keeps
	// its counter, and refuses the period from then on.
	RemovePeriod(ctx context.Context, tag, period string) error
}

// Values of [OptionPeriod]; a fiscal year is fiscal:MM-DD, its first day.
const (
	periodDay    = "day"
	periodWeek   = "week" // from Monday
	periodMonth  = "month"
	periodYear   = "year"
	periodFiscal = "fiscal:"
)

var fiscal = regexp.MustCompile(`^fiscal:(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$`)

func checkPeriod(value string) error {
	if !slices.Contains([]string{periodDay, periodWeek, periodMonth, periodYear}, value) && !fiscal.MatchString(value) {
		return fmt.Errorf("%w: %.40q is not day, week, month, year or fiscal:MM-DD (with a day up to 28)", leaf.ErrInvalid, value)
	}
	return nil
}

func checkZone(value string) error {
	if _, err := time.LoadLocation(value); err != nil || value == "Local" {
		return fmt.Errorf("%w: %.40q is no time zone of the IANA database, such as Europe/Berlin", leaf.ErrInvalid, value)
	}
	return nil
}

// checkPeriods reports options that do not go together.
func (o TagOptions) checkPeriods() error {
	switch {
	case o[OptionPeriod] == "" && o[OptionZone] != "":
		return fmt.Errorf("%w: a time zone is for tags with a period", leaf.ErrInvalid)
	case o[OptionPeriod] != "" && o.Strict():
		return fmt.Errorf("%w: a tag has an order or a period, not both: numbers increase within each period anyway", leaf.ErrInvalid)
	}
	return nil
}

// Periodic reports whether the numbers of the tag start again with each period.
func (o TagOptions) Periodic() bool { return o[OptionPeriod] != "" }

// Stockless returns the error of a call that would make a stock of the tag: [ErrStrict],
// [ErrPeriodic], [ErrMasked] or nil.
func (o TagOptions) Stockless() error {
	switch {
	case o.Masked():
		return maskedError{o[OptionMask]}
	case o.Periodic():
		return ErrPeriodic
	case o.Strict():
		return ErrStrict
	}
	return nil
}

// PeriodOf returns the period of a call for IDs, empty for a tag without. An empty name means the
// one with the date of now in the tag's time zone. Any other must name a first day, from the year
// 2000 up to the period after that one: clocks differ. Else the error wraps [leaf.ErrInvalid].
func (o TagOptions) PeriodOf(name string, now time.Time) (string, error) {
	if !o.Periodic() {
		if name != "" {
			return "", badPeriod{fmt.Errorf("%w: the tag has no periods", leaf.ErrInvalid)}
		}
		return "", nil
	}
	zone, err := zoneOf(o[OptionZone]) // UTC without one
	if err != nil {
		return "", fmt.Errorf("%w: this machine does not know the tag's time zone: %w", leaf.ErrUnsupported, err)
	}
	local := now.In(zone)
	today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	present := o.firstDay(today)
	if name == "" {
		return present.Format(time.DateOnly), nil
	}
	day, err := time.Parse(time.DateOnly, name)
	switch {
	case err != nil:
		return "", badPeriod{fmt.Errorf("%w: %.40q is no period: name its first day, such as %s", leaf.ErrInvalid, name, present.Format(time.DateOnly))}
	case !o.firstDay(day).Equal(day):
		return "", badPeriod{fmt.Errorf("%w: no period begins on %s: that day's period is %s", leaf.ErrInvalid, name, o.firstDay(day).Format(time.DateOnly))}
	case day.Year() < 2000 || day.After(o.next(present)):
		return "", badPeriod{fmt.Errorf("%w: the period %s is before the year 2000, or too far ahead", leaf.ErrInvalid, name)}
	}
	return name, nil
}

// A badPeriod is the fault of a named period, which callers may read.
type badPeriod struct{ error }

func (e badPeriod) Unwrap() error { return e.error }

// ErrBadPeriod returns the error of a call whose named period a store refuses, for a reason that
// callers may read.
func ErrBadPeriod(reason string) error {
	return badPeriod{fmt.Errorf("%w: %s", leaf.ErrInvalid, reason)}
}

// zones are the known time zones, by name: each call with a period needs one, and it comes from a file.
var zones sync.Map

func zoneOf(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, zone)
	}
	return zone, err
}

// firstDay returns the first day of the period of a day; both are dates in UTC.
func (o TagOptions) firstDay(day time.Time) time.Time {
	kind := o[OptionPeriod]
	switch kind {
	case periodDay:
		return day
	case periodWeek:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case periodMonth:
		return time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	month, date := 1, 1
	if first, ok := strings.CutPrefix(kind, periodFiscal); ok {
		month, _ = strconv.Atoi(first[:2]) // checkPeriod has seen it
		date, _ = strconv.Atoi(first[3:])
	}
	first := time.Date(day.Year(), time.Month(month), date, 0, 0, 0, 0, time.UTC)
	if first.After(day) {
		first = first.AddDate(-1, 0, 0)
	}
	return first
}

// next returns the first day of the period after the one that begins on first.
func (o TagOptions) next(first time.Time) time.Time {
	for day := first.AddDate(0, 0, 1); ; day = day.AddDate(0, 0, 1) {
		if begins := o.firstDay(day); begins.After(first) {
			return begins
		}
	}
}

// CheckRemoval reports, wrapping [leaf.ErrInvalid], why the period cannot be removed now: it is no
// past one. The clocks of servers may differ by less than an hour.
func (o TagOptions) CheckRemoval(period string, now time.Time) error {
	earlier, err := o.PeriodOf("", now.Add(-time.Hour))
	if err == nil && period != "" {
		_, err = o.PeriodOf(period, now)
	}
	if err != nil {
		return err
	}
	if period == "" || period >= earlier { // dates in order, or a tag without periods
		return fmt.Errorf("%w: only periods that are over for an hour can be removed", leaf.ErrInvalid)
	}
	return nil
}

// ErrPeriodRemoved returns the error of a call for a removed period.
func ErrPeriodRemoved(period string) error {
	return badPeriod{fmt.Errorf("%w: the period %s was removed", leaf.ErrInvalid, period)}
}

// ErrNoPeriod returns the error for a period without a counter.
func ErrNoPeriod(period string) error {
	return fmt.Errorf("%w: the period %s has no numbers", leaf.ErrInvalid, period)
}

// maxPeriodMarks is how many periods of a tag the memory knows; half of them stay when it has more.
const maxPeriodMarks = 64

// dropPeriods forgets the oldest periods.
func (g *guard) dropPeriods() {
	all := g.buffer.opts.Memory.Recall(g.buffer.tag)
	if len(all) <= maxPeriodMarks {
		return
	}
	var names []string
	for source := range all {
		names = append(names, source)
	}
	slices.Sort(names)
	err := g.buffer.opts.Memory.Forget(g.buffer.tag)
	g.recalled, g.own = nil, nil
	for _, source := range names[len(names)-maxPeriodMarks/2:] {
		g.own.set(source, all[source])
		err = errors.Join(err, g.buffer.opts.Memory.Remember(g.buffer.tag, source, all[source]))
	}
	if err != nil {
		g.buffer.opts.Logger.Warn("old periods were not forgotten", "tag", g.buffer.tag, "err", err)
	}
}

func isPeriod(source string) bool {
	_, err := time.Parse(time.DateOnly, source)
	return err == nil
}
