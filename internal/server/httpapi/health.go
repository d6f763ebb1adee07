package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = frontend.NoStore
	fmt.Fprint(w, "ok")
}

// readyMeans says what the answer of readyz is about.
const readyMeans = `ready means: since the server started the store has answered, and a worker ID is held for the time-based schemes.
A store that fails later does not count: IDs in memory are served on, and other servers would fail alike.
One that must be repaired before this server can use it does, once there is no stock.
With ?scheme=NAME only that scheme counts.
`

// readyz tells a load balancer whether to send requests here, for all schemes that are
// served or for those that are named.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if err := frontend.CheckParams(query, "scheme", "verbose"); err != nil {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	w.Header()["Content-Type"] = plainText
	w.Header()["Cache-Control"] = frontend.NoStore
	if err := h.notReady(query["scheme"]); err != nil {
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
	h.explain(w)
}

// notReady says why one of schemes cannot be served, or, where none is named, any of
// those that are enabled.
func (h *handler) notReady(schemes []string) error {
	if h.Ready == nil {
		return nil
	}
	if len(schemes) == 0 {
		return h.Ready("")
	}
	for _, scheme := range schemes {
		if err := h.IDs.Check(scheme, "any"); err != nil {
			return err
		}
		if err := h.Ready(scheme); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) explain(w http.ResponseWriter) {
	fmt.Fprintln(w)
	defer fmt.Fprint(w, readyMeans)
	for _, scheme := range h.IDs.Schemes() {
		fmt.Fprintf(w, "scheme %s enabled%s\n", scheme, h.status(scheme))
	}
	off := h.IDs.Off()
	for _, scheme := range slices.Sorted(maps.Keys(off)) {
		fmt.Fprintf(w, "scheme %s off: %s\n", scheme, off[scheme])
	}
	if h.Tags == nil {
		return
	}
	for _, s := range h.Tags.Stats() {
		if s.Err != nil {
			fmt.Fprintf(w, "tag %s: %d IDs left; failing since %s: %s\n", s.Tag, s.Stock, s.FailingSince.Format("15:04:05"), frontend.Text(s.Err))
		}
	}
}

// status says what is wrong with a scheme that is enabled, if anything is.
func (h *handler) status(scheme string) string {
	if err := h.NotReady(scheme); err != nil {
		return "; not ready: " + frontend.Text(err)
	}
	if (scheme == issuer.Snowflake || scheme == issuer.UID) && h.Workers != nil {
		if err := h.Workers.Status().Err; err != nil {
			return "; ready, but: " + frontend.Text(err)
		}
	}
	return ""
}
