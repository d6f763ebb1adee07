package v1api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

const allowDecode = "GET, HEAD, OPTIONS"

// A decoded has the fields of an ID. The numbers are strings, as IDs are.
type decoded struct {
	ID       string `json:"id"`
	Layout   string `json:"layout"`
	Time     string `json:"time"` // when the tick began, in RFC 3339
	Tick     string `json:"tick"` // counted from the layout's epoch
	Worker   string `json:"worker"`
	Sequence string `json:"sequence"`
}

func (h *handler) serveDecode(w http.ResponseWriter, r *http.Request, id string) {
	if h.answersMethod(w, r, allowDecode) {
		return
	}
	d, err := h.decode(r, id)
	if err != nil {
		h.fail(w, err)
		return
	}
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Cache-Control"] = frontend.NoStore
	_ = json.NewEncoder(w).Encode(d) // a vanished client needs no answer
}

func (h *handler) decode(r *http.Request, text string) (decoded, error) {
	if _, err := h.Admit(r, access.Take|access.Read); err != nil {
		return decoded{}, err
	}
	query, err := frontend.ParseQuery(r.URL.RawQuery, "layout")
	if err != nil {
		return decoded{}, err
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return decoded{}, fmt.Errorf("%w: the ID must be a whole number below 2^63", leaf.ErrInvalid)
	}
	d, err := h.Layouts.Decode(query.Get("layout"), id)
	if err != nil {
		return decoded{}, err
	}
	return decoded{
		ID:       strconv.FormatInt(id, 10),
		Layout:   d.Layout,
		Time:     d.Time.UTC().Format(time.RFC3339Nano),
		Tick:     strconv.FormatInt(d.Tick, 10),
		Worker:   strconv.FormatInt(d.Worker, 10),
		Sequence: strconv.FormatInt(d.Sequence, 10),
	}, nil
}
