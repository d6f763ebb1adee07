package telemetry

import "time"

var (
	workerHeld    = gauge("leaf_worker_held", "1 if this server holds a worker ID, else 0.")
	workerID      = gauge("leaf_worker_id", "The worker ID, while one is held.")
	workerTerm    = gauge("leaf_worker_term", "How often that worker ID was claimed, by any server, while one is held.")
	workerHorizon = gauge("leaf_worker_horizon_seconds", "For how long IDs may be issued if the registry of worker IDs does not answer any more, while a worker ID is held.")
	workerLost    = counter("leaf_worker_lost_total", "Worker IDs lost to others.")
	workerPutBack = counter("leaf_worker_regressions_total", "Times that the registry of worker IDs had lost writes.")
	workerFault   = gauge("leaf_worker_failing", "1 if something is wrong with the lease or its registry at present, else 0.")
	incarnation   = gauge("leaf_worker_registry_incarnation_timestamp_seconds", "Since when the registry of worker IDs is known to be served by the same server without a restart, as a Unix time; 0 where that does not matter or is not known.")
	claimDelay    = gauge("leaf_worker_claim_delay_seconds", "How long that server must have served before a claim counts; 0 where claims need not wait.")
	leases        = counter("leaf_worker_leases_total", "Calls about leases of worker IDs, by programs: claim, renew, release or refused.", "call")
	claimWaits    = counter("leaf_worker_claim_waits_total", "Claims that had to wait for that.")
	startsLeft    = gauge("leaf_worker_starts_left", "How many starts of servers have worker IDs left, where each start uses one up.")
	clockOffset   = gauge("leaf_clock_offset_seconds", "How far this machine's clock was ahead of the registry's when the lease was last extended, while a worker ID is held.")
	clockStep     = gauge("leaf_clock_step_seconds", "How far this machine's clock has moved away from the time that IDs carry.")

	layoutIssued  = counter("leaf_layout_ids_issued_total", "IDs issued, including a few lost ones.", "scheme", "layout")
	layoutAhead   = gauge("leaf_layout_ahead_ticks", "How many ticks the last ID is ahead of the clock.", "scheme", "layout")
	layoutWaiting = gauge("leaf_layout_waiting", "Calls that wait.", "scheme", "layout")
	layoutWaits   = counter("leaf_layout_waits_total", "Calls that had to wait.", "scheme", "layout")
	layoutRefused = counter("leaf_layout_refused_total", "Calls that failed for lack of IDs, of a worker ID or of time.", "scheme", "layout")
	layoutLife    = gauge("leaf_layout_life_seconds", "How long it is until the layout has no more times.", "scheme", "layout")
)

// Leases counts calls about leases for programs.
type Leases struct{ Claimed, Renewed, Released, Refused int64 }

func (c *Collector) collectWorker(out sink, now time.Time) {
	s := c.Worker()
	out.putBool(workerHeld, s.Held)
	if s.Held {
		out.put(workerID, float64(s.Worker))
		out.put(workerTerm, float64(s.Term))
		out.put(workerHorizon, s.Horizon.Sub(now).Seconds())
		out.put(clockOffset, s.ClockOffset.Seconds())
	}
	out.put(workerLost, float64(s.Lost))
	out.put(workerPutBack, float64(s.PutBacks))
	out.putBool(workerFault, s.Err != nil)
	var since int64
	if !s.IncarnationSince.IsZero() {
		since = s.IncarnationSince.Unix()
	}
	out.put(incarnation, float64(since))
	out.put(claimDelay, s.ClaimDelay.Seconds())
	out.put(claimWaits, float64(s.ClaimWaits))
	out.put(clockStep, s.ClockStep.Seconds())
	if c.Leases != nil {
		l := c.Leases()
		out.put(leases, float64(l.Claimed), "claim")
		out.put(leases, float64(l.Renewed), "renew")
		out.put(leases, float64(l.Released), "release")
		out.put(leases, float64(l.Refused), "refused")
	}
	if c.StartsLeft != nil {
		if n, ok := c.StartsLeft(); ok {
			out.put(startsLeft, float64(n))
		}
	}
	for _, l := range c.Layouts {
		s := l.Stats()
		out.put(layoutIssued, float64(s.Issued), l.Scheme, l.Name)
		out.put(layoutAhead, float64(s.Ahead/l.Tick), l.Scheme, l.Name)
		out.put(layoutWaiting, float64(s.Waiting), l.Scheme, l.Name)
		out.put(layoutWaits, float64(s.Waits), l.Scheme, l.Name)
		out.put(layoutRefused, float64(s.Refused), l.Scheme, l.Name)
		out.put(layoutLife, l.Last().Sub(now).Seconds(), l.Scheme, l.Name)
	}
}
