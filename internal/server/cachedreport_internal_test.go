package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/internal/health"
)

// Expensive reports on the health take at most a twentieth of the time, at any rate of requests. A
// stop shows at once, and so does everything else while reports are cheap.
func TestReportIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v cachedReport
		judged := 0
		costly := true
		ask := func(stopping bool) {
			v.get(stopping, func(bool) (health.Report, bool) {
				judged++
				time.Sleep(10 * time.Millisecond)
				return health.Report{}, costly
			})
		}
		for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(time.Millisecond) {
			ask(false)
		}
		if judged < 40 || judged > 50 {
			t.Errorf("judged %d times in 10 s, each of 10 ms", judged)
		}
		before := judged
		if ask(true); judged != before+1 {
			t.Error("what was judged before the stop is told after it")
		}
		time.Sleep(mostStanding)
		costly, before = false, judged
		ask(true)
		if ask(true); judged != before+2 {
			t.Error("a report that is cheap to make is not always of the moment")
		}
	})
}
