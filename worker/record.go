package worker

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The versions of the text form. A record has the oldest one that it fits, for older releases.
const (
	stampVersion  = 2
	recordVersion = 3 // with the fields of pools
)

// An Instance tells one claim of a worker ID from every other: 128 random bits. The
// zero Instance is no holder.
type Instance [16]byte

// NewInstance returns a random instance.
func NewInstance() (i Instance) {
	_, _ = rand.Read(i[:]) // never fails
	return i
}

// IsZero reports whether i is no holder.
func (i Instance) IsZero() bool { return i == Instance{} }

// String returns i as 32 hexadecimal digits.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

// MarshalText writes i as [Instance.String] does; the zero Instance is empty.
func (i Instance) MarshalText() ([]byte, error) {
	if i.IsZero() {
		return nil, nil
	}
	return []byte(i.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (i *Instance) UnmarshalText(text []byte) error {
	*i = Instance{}
	if len(text) == 0 {
		return nil
	}
	if hex.DecodedLen(len(text)) != len(i) {
		return fmt.Errorf("instance of %d digits", len(text))
	}
	_, err := hex.Decode(i[:], text)
	return err
}

// A ServedLayout is what decides how times and worker IDs become IDs, under the name that
// its IDs go by. IDs of one name are unique only as long as its values stay.
type ServedLayout struct {
	Name         string `json:"name"`
	Epoch        int64  `json:"epoch"` // Unix milliseconds
	Tick         int64  `json:"tick"`  // milliseconds
	TimeBits     int    `json:"time"`
	WorkerBits   int    `json:"worker"`
	SequenceBits int    `json:"sequence"`
}

// defaultMark begins the reserved names, which no layout of a caller's choice has. They sort last,
// so that an error names a layout of the configuration first.
const defaultMark = "~"

// Default returns l under the reserved name of a scheme: its IDs go to callers who name no
// layout. Such callers are the same before and after a change of the scheme's default layout,
// so a registry lets a scheme have one default only.
func (l ServedLayout) Default(scheme string) ServedLayout {
	l.Name = defaultMark + scheme
	return l
}

// IsDefault reports whether l has a reserved name, see [ServedLayout.Default].
func (l ServedLayout) IsDefault() bool { return strings.HasPrefix(l.Name, defaultMark) }

// sameIDs reports whether l and m make the same IDs of the same times and worker IDs.
func (l ServedLayout) sameIDs(m ServedLayout) bool {
	l.Name = m.Name
	return l == m
}

// MaxWorker returns the largest worker ID that l holds.
func (l ServedLayout) MaxWorker() int64 { return 1<<l.WorkerBits - 1 }

// A Record is the content of a worker's cell. Instance, Term and Horizon are the lease; the fields
// after them are for the layout check, for clock checks, and for people.
//
// Times and durations are whole milliseconds; a registry keeps no finer ones.
//
// A Version identifies one write of a cell, so that [Registry.Swap] needs no read before it. No two
// contents of a cell have one version, even if the registry lost writes in between. [Registry.Load],
// List and Swap set it. A registry without versions leaves it empty.
type Record struct {
	Worker  int64
	Version string // set by the registry, which alone can read it, or empty

	Instance Instance  // the holder, or zero
	Term     int64     // the number of claims so far
	Horizon  time.Time // times below it may have been issued, by the holder or before it

	Layouts []ServedLayout // every layout ever served under the worker ID, by name
	Owner   string         // who wrote last, for people
	Seen    time.Time      // on the registry's clock when it was written; zero: not known
	Offset  time.Duration  // the writer's clock minus the registry's, then

	// The stamp, on a registry that may lose writes.
	Incarnation string        // of the registry, when it was written; empty: not known
	Since       time.Time     // on the registry's clock: the incarnation is known to have answered since then
	ClaimDelay  time.Duration // how long claims wait after a loss, as far as its writers knew

	// Of a pool.
	Floor time.Time // the lease's floor, under which a release does not go
	Pool  Pool      // the definition of a pool, in a cell of its own
}

// version returns the oldest version of the text form that holds r.
func (r Record) version() int {
	switch {
	case !r.Floor.IsZero() || r.Pool != Pool{}:
		return recordVersion
	case r.Incarnation != "" || !r.Since.IsZero() || r.ClaimDelay != 0:
		return stampVersion
	}
	return 1
}

// Held reports whether an instance holds r; its horizon may have passed.
func (r Record) Held() bool { return !r.Instance.IsZero() }

// IsZero reports whether r was never written.
func (r Record) IsZero() bool {
	return r.Equal(Record{Worker: r.Worker})
}

// Equal reports whether r and s are the same in all fields except Version.
func (r Record) Equal(s Record) bool {
	return r.Worker == s.Worker && r.Instance == s.Instance && r.Term == s.Term && r.Horizon.Equal(s.Horizon) &&
		slices.Equal(r.Layouts, s.Layouts) && r.Owner == s.Owner && r.Seen.Equal(s.Seen) && r.Offset == s.Offset &&
		r.Incarnation == s.Incarnation && r.Since.Equal(s.Since) && r.ClaimDelay == s.ClaimDelay &&
		r.Floor.Equal(s.Floor) && r.Pool == s.Pool
}

// same reports whether r and s are the same write of a cell.
func (r Record) same(s Record) bool { return r.Version == s.Version && r.Equal(s) }

// recordText is the text form.
type recordText struct {
	Version     int            `json:"v"`
	Instance    Instance       `json:"instance"`
	Term        int64          `json:"term"`
	Horizon     milliTime      `json:"horizon"`
	Layouts     []ServedLayout `json:"layouts,omitempty"`
	Owner       string         `json:"owner,omitempty"`
	Seen        milliTime      `json:"seen,omitzero"`
	Offset      millis         `json:"offset,omitempty"`
	Incarnation string         `json:"incarnation,omitempty"`
	Since       milliTime      `json:"since,omitzero"`
	ClaimDelay  millis         `json:"claim_delay,omitempty"`
	Floor       milliTime      `json:"floor,omitzero"`
	Pool        poolText       `json:"pool,omitzero"`
}

type poolText struct {
	Name       string       `json:"name"`
	Layout     ServedLayout `json:"layout"`
	MaxTTL     millis       `json:"max_ttl"`
	ClaimDelay millis       `json:"claim_delay"`
}

// MarshalText returns r, without Worker and Version, as one line of JSON. Equal records have
// equal texts, so that a driver may keep and compare texts. It fails if Horizon is before 1970.
func (r Record) MarshalText() ([]byte, error) {
	if unixMilli(r.Horizon) < 0 {
		return nil, fmt.Errorf("worker record with a horizon of %v", r.Horizon)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(recordText{
		Version: r.version(), Instance: r.Instance, Term: r.Term, Horizon: milliTime{r.Horizon},
		Layouts: slices.SortedFunc(slices.Values(r.Layouts), byName), Owner: r.Owner,
		Seen: milliTime{r.Seen}, Offset: millis(r.Offset),
		Incarnation: r.Incarnation, Since: milliTime{r.Since}, ClaimDelay: millis(r.ClaimDelay),
		Floor: milliTime{r.Floor},
		Pool:  poolText{r.Pool.Name, r.Pool.Layout, millis(r.Pool.MaxTTL), millis(r.Pool.ClaimDelay)},
	})
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// UnmarshalText reads the result of MarshalText; r.Worker and r.Version stay. The error wraps
// [ErrNewer] if a newer release wrote it.
func (r *Record) UnmarshalText(text []byte) error {
	var version struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return fmt.Errorf("worker record %q: %w", shorten(text), err)
	}
	if version.Version > recordVersion {
		return fmt.Errorf("worker record of format %d: %w", version.Version, ErrNewer)
	}
	var t recordText
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return fmt.Errorf("worker record %q: %w", shorten(text), err)
	}
	if _, err := dec.Token(); err != io.EOF || t.Version < 1 || t.Term < 0 || unixMilli(t.Horizon.Time) < 0 {
		return fmt.Errorf("worker record %q is malformed", shorten(text))
	}
	*r = Record{
		Worker: r.Worker, Version: r.Version, Instance: t.Instance, Term: t.Term, Horizon: t.Horizon.Time,
		Layouts: t.Layouts, Owner: t.Owner, Seen: t.Seen.Time, Offset: time.Duration(t.Offset),
		Incarnation: t.Incarnation, Since: t.Since.Time, ClaimDelay: time.Duration(t.ClaimDelay),
		Floor: t.Floor.Time,
		Pool:  Pool{t.Pool.Name, t.Pool.Layout, time.Duration(t.Pool.MaxTTL), time.Duration(t.Pool.ClaimDelay)},
	}
	return nil
}

// shorten bounds the quoted part of an error.
func shorten(text []byte) []byte { return text[:min(len(text), 200)] }
