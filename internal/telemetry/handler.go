package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/time/rate"
)

// maxScrapes is how many scrapes are served at the same time.
const maxScrapes = 4

// NewHandler returns what serves the metrics of c, of the Go runtime and of the process, in the
// formats of Prometheus. It logs that a scrape could not be served as a whole.
func NewHandler(c *Collector, log *slog.Logger) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog:            &scrapeLog{log: log, lines: rate.Sometimes{Interval: scrapeLogInterval}},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
}

// scrapeLogInterval is the least time between two lines about scrapes.
const scrapeLogInterval = time.Minute

// A scrapeLog logs failing scrapes at a bounded rate: a vanished client fails for each metric.
type scrapeLog struct {
	log   *slog.Logger
	lines rate.Sometimes
}

// Println implements [promhttp.Logger].
func (l *scrapeLog) Println(v ...any) {
	l.lines.Do(func() {
		l.log.Warn("a scrape was not served as a whole; this is logged once a minute at most", "err", strings.TrimSpace(fmt.Sprintln(v...)))
	})
}
