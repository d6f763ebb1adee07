package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

// A scenario is the sum of all runs of one test.
type scenario struct {
	lab.Result
	seeds []string
}

// add adds a run.
func (s *scenario) add(r lab.Result) {
	s.Answered, s.Clients, s.Ranges = s.Answered+r.Answered, s.Clients+r.Clients, s.Ranges+r.Ranges
	s.IDs, s.Duplicates, s.Documented, s.Failed = s.IDs+r.IDs, s.Duplicates+r.Duplicates, s.Documented+r.Documented, s.Failed+r.Failed
	s.Silence, s.Causes = max(s.Silence, r.Silence), append(s.Causes, r.Causes...)
	for name, n := range r.Nemeses {
		s.Nemeses[name] += n
	}
	s.Error = cmp.Or(s.Error, r.Error)
	s.seeds = append(s.seeds, strconv.FormatUint(r.Seed, 10))
}

func sumResults(all []lab.Result) (sums []scenario) {
	for _, r := range all {
		if i := slices.IndexFunc(sums, func(s scenario) bool { return s.Test == r.Test }); i >= 0 {
			sums[i].add(r)
			continue
		}
		s := scenario{Result: lab.Result{Test: r.Test, Seed: r.Seed, Store: r.Store, Scheme: r.Scheme, Limit: r.Limit, Holes: r.Holes, Nemeses: map[string]int{}}}
		s.add(r)
		sums = append(sums, s)
	}
	slices.SortFunc(sums, func(a, b scenario) int { return cmp.Compare(a.Test, b.Test) })
	return sums
}

// distinctResults leaves out the runs that count already: of a folder named twice, or copied.
func distinctResults(all []lab.Result) (some []lab.Result) {
	for _, r := range all {
		same := func(o lab.Result) bool { return o.Test == r.Test && o.Seed == r.Seed && o.Took == r.Took }
		if !slices.ContainsFunc(some, same) {
			some = append(some, r)
		}
	}
	return some
}

// distinct leaves out the results with schedules that count already: of a folder named twice, or
// copied.
func distinct(all []lab.Schedules) (some []lab.Schedules) {
	for _, s := range all {
		if !slices.ContainsFunc(some, s.Overlaps) {
			some = append(some, s)
		}
	}
	return some
}

// days names the days of the first and of the last schedule.
func days(all []lab.Schedules) string {
	var seen []string
	for _, s := range all {
		if s.First > 0 {
			seen = append(seen, time.Unix(0, int64(s.First)).UTC().Format(time.DateOnly))
		}
	}
	if len(seen) == 0 {
		return ""
	}
	first, last := slices.Min(seen), slices.Max(seen)
	if first == last {
		return ", on " + first
	}
	return fmt.Sprintf(", from %s to %s", first, last)
}

func sumSchedules(all []lab.Schedules) (sums []lab.Schedules) {
	for _, s := range all {
		i := slices.IndexFunc(sums, func(o lab.Schedules) bool { return o.Kind == s.Kind })
		if i < 0 {
			sums = append(sums, s)
			continue
		}
		o := &sums[i]
		o.Schedules, o.Answered, o.IDs, o.Failed, o.Faults = o.Schedules+s.Schedules, o.Answered+s.Answered, o.IDs+s.IDs, o.Failed+s.Failed, o.Faults+s.Faults
		o.Searches, o.Undecided, o.Virtual, o.Took = o.Searches+s.Searches, o.Undecided+s.Undecided, o.Virtual+s.Virtual, o.Took+s.Took
		o.Error = cmp.Or(o.Error, s.Error)
	}
	return sums
}

func plain(some []scenario) (results []lab.Result) {
	for _, s := range some {
		results = append(results, s.Result)
	}
	return results
}

// written says when a sum was made.
func written(now time.Time, sum string) string {
	return fmt.Sprintf("Written by `make lab` on %s, on %d processors.\n\n%s", now.Format(time.DateOnly), runtime.NumCPU(), sum)
}

// summary counts answers first: one answer may bring a million IDs, which prove little more than one.
func (r *report) summary() string {
	all := scenario{Result: lab.Result{Nemeses: map[string]int{}}}
	for _, c := range r.results {
		all.add(c.Result)
	}
	undecided := 0
	for _, s := range r.searches {
		if s.Undecided {
			undecided++
		}
	}
	name, share := r.largest()
	lines := []string{
		fmt.Sprintf("**%s answered calls** of real servers to %s distinct clients, in %d scenarios with %s faults: %s ranges, %s IDs. "+
			"**%s of them came twice**; %s more did within documented limits, each with its cause. %s calls failed. The largest share of the answers, %.1f %%, is that of %s.",
			number(all.Answered), number(all.Clients), len(r.results), number(int64(all.Strikes())), number(all.Ranges), number(all.IDs),
			number(all.Duplicates), number(all.Documented), number(all.Failed), 100*share, name),
		fmt.Sprintf("%s searches for an order of the calls to a store; undecided: %d.", number(int64(len(r.searches))), undecided),
	}
	if failed := r.failed(); len(failed) > 0 {
		lines = slices.Insert(lines, 1, "**A check failed:** "+strings.Join(failed, "; ")+".")
	}
	return bullets(lines...)
}

// failed says in which scenarios of real servers a check failed, and what it found. Other runs of
// such a scenario do not make that undone.
func (r *report) failed() (all []string) {
	for _, c := range r.results {
		if c.Error != "" || c.Duplicates > 0 {
			all = append(all, c.Name()+": "+cmp.Or(firstLine(c.Error), number(c.Duplicates)+" IDs came twice"))
		}
	}
	return all
}

// simulator is the summary of the simulator.
func (r *report) simulator() string {
	var sum lab.Schedules
	for _, s := range r.simulated {
		s.Kind = ""
		sum = sumSchedules([]lab.Schedules{sum, s})[0]
	}
	return bullets(
		fmt.Sprintf("**%s answered calls of the simulator** in %s schedules with %s faults%s: %s IDs. For each fault there are %s answers.",
			number(sum.Answered), number(sum.Schedules), number(sum.Faults), r.days, number(sum.IDs), density(sum)),
		fmt.Sprintf("%s searches for an order of the calls to a store; undecided: %s.", number(sum.Searches), number(sum.Undecided)))
}

// density is the number of answered calls for each fault: answers without faults prove little.
func density(s lab.Schedules) string {
	return fmt.Sprintf("%.1f", float64(s.Answered)/float64(max(s.Faults, 1)))
}

func bullets(lines ...string) string {
	for i := range lines {
		lines[i] = "* " + strings.ReplaceAll(wrap(lines[i], 98), "\n", "\n  ")
	}
	return strings.Join(lines, "\n")
}

// largest returns the scenario with the most answered calls, and its share.
func (r *report) largest() (name string, share float64) {
	var sum int64
	most := scenario{Result: lab.Result{Test: "none"}}
	for _, c := range r.results {
		if sum += c.Answered; c.Answered > most.Answered {
			most = c
		}
	}
	return most.Name(), float64(most.Answered) / float64(max(sum, 1))
}

// tooUndecided reports whether more than one of a hundred searches for an order does not decide: of
// those of real servers, or of the simulator, whose many must not hide the few others.
func (r *report) tooUndecided() error {
	var simulated, real lab.Schedules
	for _, s := range r.searches {
		if real.Searches++; s.Undecided {
			real.Undecided++
		}
	}
	for _, s := range r.simulated {
		simulated.Searches, simulated.Undecided = simulated.Searches+s.Searches, simulated.Undecided+s.Undecided
	}
	for _, s := range []lab.Schedules{real, simulated} {
		if s.Undecided*100 > s.Searches {
			return fmt.Errorf("%w: %d of %d", errUndecided, s.Undecided, s.Searches)
		}
	}
	return nil
}

// Errors of the whole: it may be red though each part is green.
var (
	errShare     = errors.New("one scenario has more than a tenth of the answered calls")
	errUndecided = errors.New("more than one of a hundred searches for an order is undecided")
	errFewFaults = errors.New("the simulator answered more than a hundred calls for each fault")
	errFailed    = errors.New("a check failed")
	errUnnoticed = errors.New("a broken rule was not noticed")
)

// balanced checks that no scenario has most of the answers, that each kind of the simulator's
// schedules has enough faults, that searches decide, and that no kept run has failed.
func (r *report) balanced() error {
	var errs []error
	if name, share := r.largest(); share > 0.1 {
		errs = append(errs, fmt.Errorf("%w: %s has %.1f %%", errShare, name, 100*share))
	}
	for _, s := range r.simulated {
		if s.Answered > 100*s.Faults {
			errs = append(errs, fmt.Errorf("%w: %s: %s", errFewFaults, s.Kind, density(s)))
		}
	}
	for _, found := range r.failed() {
		errs = append(errs, fmt.Errorf("%w: %s", errFailed, found))
	}
	for _, s := range r.simulated {
		if s.Error != "" {
			errs = append(errs, fmt.Errorf("%w: %s: %s", errFailed, s.Kind, firstLine(s.Error)))
		}
	}
	for _, s := range r.saboteurs {
		if s.Sign == "" {
			errs = append(errs, fmt.Errorf("%w: %s in %s", errUnnoticed, s.Rule, s.Kind))
		}
	}
	return errors.Join(append(errs, r.tooUndecided())...)
}

// causes lists the duplicates within documented limits.
func (r *report) causes() string {
	var rows [][]string
	for _, c := range r.results {
		for _, cause := range c.Causes {
			rows = append(rows, []string{c.Name(), cause.First, cause.Second, number(cause.IDs), fmt.Sprint(cause.Within), cause.Why})
		}
	}
	return titled("### Duplicates within documented limits", table([]string{"Scenario", "Issued by", "Again by", " IDs", "All in", "Why"}, rows))
}
