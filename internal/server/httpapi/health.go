package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = frontend.NoStore
	fmt.Fprint(w, "ok")
}

// readyMeans explains the answer of readyz.
const readyMeans = `ready means: the store has answered since the start, a worker ID is held, and IDs can be issued for a while (ready_for).
A store that fails later counts once nothing that is asked for can be issued: the other servers would fail alike.
With ?scheme=NAME only that scheme counts.
`

// readyz tells a load balancer whether to send requests here, for all served schemes or for named
// ones.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if err := frontend.CheckParams(query, "scheme", "verbose"); err != nil {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	report := h.Report()
	err := h.notReady(report, query["scheme"])
	if errors.Is(err, issuer.ErrNoScheme) {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = frontend.NoStore
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "not ready: %s", frontend.Text(err))
	} else {
		fmt.Fprint(w, "ok")
	}
	if !query.Has("verbose") {
		return
	}
	if _, err := h.Admit(r, access.Read); err != nil {
		fmt.Fprintf(w, "\nthe reasons are for callers who may read: %s\n", frontend.Text(err))
		return
	}
	h.explain(w, report)
}

// notReady returns the reason why one of schemes is not served. Without schemes it returns the
// reason why the whole server should get no requests.
func (h *handler) notReady(report health.Report, schemes []string) error {
	if len(schemes) == 0 {
		return report.Err("")
	}
	for _, scheme := range schemes {
		if err := h.IDs.Check(scheme, "any"); err != nil {
			return err
		}
		if err := report.Err(scheme); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) explain(w http.ResponseWriter, report health.Report) {
	fmt.Fprintln(w)
	defer fmt.Fprint(w, readyMeans)
	for _, scheme := range h.IDs.Schemes() {
		state := ""
		if err := report.Err(scheme); err != nil {
			state = "; not ready: " + frontend.Text(err)
		}
		fmt.Fprintf(w, "scheme %s enabled%s\n", scheme, state)
	}
	off := h.IDs.Off()
	for _, scheme := range slices.Sorted(maps.Keys(off)) {
		fmt.Fprintf(w, "scheme %s off: %s\n", scheme, off[scheme])
	}
	for _, c := range report.Conditions {
		explainCondition(w, c)
	}
	if h.Tags == nil {
		return
	}
	failing := h.Tags.Failing()
	for _, s := range failing[:min(len(failing), maxFailing)] {
		fmt.Fprintf(w, "tag %s: %d IDs left; failing since %s: %s\n", s.Tag, s.Stock, s.FailingSince.Format("15:04:05"), frontend.Text(s.Err))
	}
	if others := len(failing) - maxFailing; others > 0 {
		fmt.Fprintf(w, "and %d other tags\n", others)
	}
}

const maxFailing = 100

func explainCondition(w http.ResponseWriter, c health.Condition) {
	state := "degraded"
	if c.Down {
		state = "down"
	}
	fmt.Fprintf(w, "%s %s %s: %s\n", state, c.Name, strings.Join(c.Schemes, ", "), frontend.Text(c.Err))
	if advice := hint.ForCondition(c); advice != "" {
		fmt.Fprintf(w, "  do: %s\n", advice)
	}
}

func (h *handler) metrics(w http.ResponseWriter, r *http.Request) {
	if h.Metrics == nil {
		h.notFound(w, r)
		return
	}
	h.Metrics.ServeHTTP(w, r)
}
