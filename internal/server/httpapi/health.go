package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/leaf-id/leaf/internal/issuer"
)

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = noStore
	fmt.Fprint(w, "ok")
}

// readyz tells a load balancer whether to send requests here. A store that fails
// later on does not count: the server goes on serving from its stock, and the others
// would fail alike. One that became unfit for this server does, once stock runs out.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = noStore
	err := h.notReady()
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "not ready: %v", err)
	} else {
		fmt.Fprint(w, "ok")
	}
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		h.explain(w)
	}
}

func (h *handler) notReady() error {
	if h.ready == nil {
		return nil
	}
	return h.ready()
}

func (h *handler) explain(w http.ResponseWriter) {
	fmt.Fprintln(w)
	for _, scheme := range h.ids.Schemes() {
		fmt.Fprintf(w, "scheme %s enabled%s\n", scheme, h.trouble(scheme))
	}
	off := h.ids.Off()
	for _, scheme := range slices.Sorted(maps.Keys(off)) {
		fmt.Fprintf(w, "scheme %s off: %s\n", scheme, off[scheme])
	}
	if h.tags == nil {
		return
	}
	for _, s := range h.tags.Stats() {
		if s.Err != nil {
			fmt.Fprintf(w, "tag %s: %d IDs left; failing since %s: %v\n", s.Tag, s.Stock, s.FailingSince.Format("15:04:05"), s.Err)
		}
	}
}

// trouble says why a scheme that is enabled cannot serve at present.
func (h *handler) trouble(scheme string) string {
	if (scheme == issuer.Snowflake || scheme == issuer.UID) && h.workers != nil {
		if err := h.workers.Err(); err != nil {
			return fmt.Sprintf("; not ready: %v", err)
		}
		if err := h.workers.Status().Err; err != nil {
			return fmt.Sprintf("; ready, but: %v", err)
		}
	}
	if (scheme == issuer.Segment || scheme == issuer.Ticket) && h.storeSilent() {
		return "; not ready: the store has not answered yet"
	}
	return ""
}
