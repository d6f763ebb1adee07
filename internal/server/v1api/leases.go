package v1api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/worker"
)

// maxLeaseBody bounds the body of a claim or a renewal, in bytes.
const maxLeaseBody = 4096

// A claim is the body of a claim, and of a renewal, which has the TTL alone. Times are Unix
// milliseconds.
type claim struct {
	Pool   string  `json:"pool"`
	TTL    string  `json:"ttl"`
	Holder string  `json:"holder"`
	Layout *layout `json:"layout"`
}

type layout struct {
	Epoch        int64 `json:"epoch"`
	TickMS       int64 `json:"tick_ms"`
	TimeBits     int   `json:"time_bits"`
	WorkerBits   int   `json:"worker_bits"`
	SequenceBits int   `json:"sequence_bits"`
}

type lease struct {
	Lease   string `json:"lease"`
	Pool    string `json:"pool"`
	Worker  int64  `json:"worker"`
	Layout  layout `json:"layout"`
	Floor   int64  `json:"floor"`
	Limit   int64  `json:"limit"`
	Now     int64  `json:"now"`
	RenewAt int64  `json:"renew_at"`
}

// serveLeases serves the paths from [frontend.LeasesPath] on; id is what follows.
func (h *handler) serveLeases(w http.ResponseWriter, r *http.Request, id string) {
	allow, serve := "POST, OPTIONS", h.claimLease
	if id != "" {
		allow = "POST, DELETE, OPTIONS"
		serve = func(r *http.Request, workers *issuer.Workers) (*lease, error) {
			return h.changeLease(r, workers, id[1:])
		}
	}
	if id != "" && (len(id) < 2 || strings.Contains(id[1:], "/")) {
		h.noRoute(w, r)
		return
	}
	if h.answersMethod(w, r, allow) {
		return
	}
	got, err := h.lease(r, serve)
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header()["Cache-Control"] = frontend.NoStore
	if got == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header()["Content-Type"] = jsonType
	_ = json.NewEncoder(w).Encode(got) // the program claims again if it did not get the answer
}

// lease admits the caller and serves.
func (h *handler) lease(r *http.Request, serve func(*http.Request, *issuer.Workers) (*lease, error)) (*lease, error) {
	if _, err := h.Admit(r, access.Lease); err != nil {
		return nil, err
	}
	workers, err := h.NeedWorkers()
	if err != nil {
		return nil, err
	}
	return serve(r, workers)
}

func (h *handler) claimLease(r *http.Request, workers *issuer.Workers) (*lease, error) {
	c, ttl, err := readClaim(r)
	if err != nil {
		return nil, err
	}
	caller, err := h.Caller(r)
	if err == nil {
		err = caller.Lease(c.Pool)
	}
	if err != nil {
		return nil, err
	}
	ask := worker.PoolClaim{Pool: c.Pool, TTL: ttl, Holder: c.Holder}
	if l := c.Layout; l != nil {
		ask.Layout = worker.ServedLayout{Epoch: l.Epoch, Tick: l.TickMS, TimeBits: l.TimeBits, WorkerBits: l.WorkerBits, SequenceBits: l.SequenceBits}
	}
	return leaseOf(workers.Claim(r.Context(), ask))
}

// changeLease renews a lease, or releases it: then the result is nil.
func (h *handler) changeLease(r *http.Request, workers *issuer.Workers, id string) (*lease, error) {
	if text, ok := unescape(r, id); ok {
		id = text
	}
	if r.Method == http.MethodDelete {
		used, err := usedIn(r.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		return nil, workers.Release(r.Context(), id, used)
	}
	c, ttl, err := readClaim(r)
	if err != nil {
		return nil, err
	}
	if (c != claim{TTL: c.TTL}) {
		return nil, fmt.Errorf("%w: a renewal has a ttl alone", leaf.ErrInvalid)
	}
	return leaseOf(workers.Renew(r.Context(), id, ttl))
}

// usedIn returns the required parameter used: a program that forgets it would lose the
// times that it has issued. "none" means that it issued nothing.
func usedIn(rawQuery string) (time.Time, error) {
	query, err := frontend.ParseQuery(rawQuery, "used")
	if err != nil {
		return time.Time{}, err
	}
	text := query.Get("used")
	if text == "none" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return time.Time{}, fmt.Errorf("%w: used must be the latest time in an issued ID, in Unix milliseconds, or none", leaf.ErrInvalid)
	}
	return time.UnixMilli(ms), nil
}

// readClaim reads a body, which may be empty.
func readClaim(r *http.Request) (c claim, ttl time.Duration, err error) {
	if _, err := frontend.ParseQuery(r.URL.RawQuery); err != nil {
		return c, 0, err
	}
	dec := json.NewDecoder(io.LimitReader(r.Body, maxLeaseBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, 0, fmt.Errorf("%w: the body must be JSON as in {\"pool\":\"orders\",\"ttl\":\"5m\",\"holder\":\"host-1\"}, of at most %d bytes: %w",
			leaf.ErrInvalid, maxLeaseBody, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, 0, fmt.Errorf("%w: text follows the JSON of the body", leaf.ErrInvalid)
	}
	if c.TTL != "" {
		if ttl, err = time.ParseDuration(c.TTL); err != nil || ttl <= 0 {
			return c, 0, fmt.Errorf("%w: ttl must be a duration such as 90s or 5m", leaf.ErrInvalid)
		}
	}
	return c, ttl, nil
}

func leaseOf(l worker.PoolLease, err error) (*lease, error) {
	if err != nil {
		return nil, err
	}
	p := l.Pool.Layout
	got := &lease{
		Lease: l.ID(), Pool: l.Pool.Name, Worker: l.Worker, Limit: l.Limit.UnixMilli(), Now: l.Now.UnixMilli(), RenewAt: l.RenewAt().UnixMilli(),
		Layout: layout{p.Epoch, p.Tick, p.TimeBits, p.WorkerBits, p.SequenceBits},
	}
	if !l.Floor.IsZero() {
		got.Floor = l.Floor.UnixMilli()
	}
	return got, nil
}
