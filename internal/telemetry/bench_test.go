package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

// newSet returns a set with so many tags in use.
func newSet(t testing.TB, tags int) *segment.Set {
	t.Helper()
	store := memory.New().Store()
	name := func(i int) string { return fmt.Sprintf("tag.%05d", i) }
	for i := range tags {
		if err := store.Create(t.Context(), segment.Tag{Name: name(i), MaxID: 1, Step: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	set := segment.NewSet(store, nil)
	t.Cleanup(func() { _ = set.Close(context.Background()) })
	<-set.Ready()
	for i := range tags {
		if _, err := set.Next(t.Context(), name(i)); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

func newHandler(set *segment.Set) http.Handler {
	return telemetry.NewHandler(telemetry.NewCollector(telemetry.Sources{
		Health: func() health.Report {
			return health.Judge(health.Facts{Store: &health.StoreFacts{Answered: true, InUse: true, Failing: set.Server().Failing(), Tags: set.Server().Totals()}})
		},
		Tags: set.Server().Totals(), StoreErr: set.Server().StoreErr, StoreCalls: telemetry.NewStoreCalls(),
		Requests: telemetry.NewFrontEnds([]string{"EXHAUSTED", "INTERNAL"}),
	}), slog.New(slog.DiscardHandler))
}

// scrape asks as Prometheus does.
func scrape(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// cpuTime is what this process has used of all cores.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScrape reports how much of a core a scrape each second takes: the CPU time of a
// scrape, in hundredths of a second.
func BenchmarkScrape(b *testing.B) {
	for _, tags := range []int{0, 500, 10_000} {
		b.Run(fmt.Sprint(tags, "tags"), func(b *testing.B) {
			h := newHandler(newSet(b, tags))
			scrape(h)
			b.ReportAllocs()
			before, size := cpuTime(b), 0
			for b.Loop() {
				size = scrape(h).Body.Len()
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e7, "%core")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// BenchmarkNext takes IDs of one of 10,000 tags from all cores, alone and with a scrape each
// second: the difference should be below the noise.
func BenchmarkNext(b *testing.B) {
	set := newSet(b, 10_000)
	h := newHandler(set)
	for name, pause := range map[string]time.Duration{"alone": time.Hour, "scraped": time.Second} {
		b.Run(name, func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for tick := time.Tick(pause); ctx.Err() == nil; {
					select {
					case <-tick:
						scrape(h)
					case <-ctx.Done():
					}
				}
			}()
			b.ResetTimer()
			before := cpuTime(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := set.Next(ctx, "tag.00042"); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			stop()
			<-done
		})
	}
}
