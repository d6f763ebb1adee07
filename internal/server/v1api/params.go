package v1api

import (
	"fmt"
	"net/url"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// params are the parameters of a request for IDs.
type params struct {
	n          int // 0: one ID, by itself
	text       bool
	ranges     bool
	contiguous bool
	form       bool   // texts in place of numbers
	period     string // of a tag without a stock; empty: the present one
	stockless  bool
}

// params reads the query. The error wraps [leaf.ErrInvalid].
func (q *request) params() (p params, err error) {
	query, err := frontend.ParseQuery(q.http.URL.RawQuery, "n", "format", "ranges", "contiguous", "period", "form")
	if err != nil {
		return p, err
	}
	if p.text, err = word(query, "format", "json", "text"); err != nil {
		return p, err
	}
	if p.ranges, err = flag(query, "ranges"); err != nil {
		return p, err
	}
	if p.contiguous, err = flag(query, "contiguous"); err != nil {
		return p, err
	}
	if p.form, err = flag(query, "form"); err != nil {
		return p, err
	}
	p.period = query.Get("period")
	switch {
	case query.Has("period") && !isDate(p.period):
		return p, fmt.Errorf("%w: period must name the first day of a period, such as 2026-11-23", leaf.ErrInvalid)
	case p.text && p.ranges:
		return p, fmt.Errorf("%w: ranges are answered in JSON only: leave out format=text", leaf.ErrInvalid)
	case p.ranges && p.form:
		return p, fmt.Errorf("%w: texts have no ranges: leave out ranges or form", leaf.ErrInvalid)
	case p.ranges && issuer.SchemeOf(q.scheme).Text:
		return p, fmt.Errorf("%w: the IDs of %s are text, which has no ranges", leaf.ErrInvalid, q.scheme)
	}
	return p, q.count(query, &p)
}

// count reads n.
func (q *request) count(query url.Values, p *params) error {
	if !query.Has("n") {
		if p.ranges || p.contiguous {
			p.n = 1
		}
		return nil
	}
	most := q.IDs.MaxBatch()
	if p.ranges {
		most = q.IDs.MaxRange()
	}
	var err error
	p.n, err = frontend.Count(query, most)
	return err
}

// word reports whether a parameter is the second of two words. Left out it is the first.
func word(query url.Values, name, first, second string) (bool, error) {
	value := query.Get(name)
	if query.Has(name) && value != first && value != second {
		return false, fmt.Errorf("%w: %s must be %s or %s", leaf.ErrInvalid, name, first, second)
	}
	return value == second, nil
}

// flag returns a parameter 0, 1, false or true; a missing one is false.
func flag(query url.Values, name string) (bool, error) {
	switch value := query.Get(name); {
	case value == "1" || value == "true":
		return true, nil
	case value == "0" || value == "false" || !query.Has(name):
		return false, nil
	}
	return false, fmt.Errorf("%w: %s must be 0, 1, false or true", leaf.ErrInvalid, name)
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}
