package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
)

// Options configures a [Gate]. The first two say what callers may do that show no credentials.
type Options struct {
	Local      bool // only this machine reaches the server, which matters until tokens are known
	PublicRead bool // everyone may read
	Limits     Limits

	// HasTag reports whether a tag is known to exist; nil: all do. Limits of other names take no
	// room from those of tags.
	HasTag func(tag string) bool

	Logger *slog.Logger // receives messages for operators; nil discards them
}

// A Gate holds the rules in force. It is safe for concurrent use. A nil Gate is that of a
// server that other machines reach, without credentials and with public reading.
type Gate struct {
	opts      Options
	rules     atomic.Pointer[rules]
	anonymous Caller
	attempts  attempts
	tokens    buckets // by name of the token
	addresses buckets
	keys      keyTable
}

// New returns a Gate that knows no tokens.
func New(opts Options) *Gate {
	g := &Gate{opts: opts, attempts: newAttempts(cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)))}
	g.anonymous.gate = g
	g.keys.tags.shared = make(map[Limit]*bucket) // no tag's count is forgotten because of other tags
	g.keys.labels.shared = make(map[Limit]*bucket)
	g.rules.Store(withoutTokens(opts))
	return g
}

// Prepare reads the tokens file at path, unless that is empty. The returned function applies the
// file and the other settings together. The used parts of limits stay. After an error so do the rules
// in force.
func (g *Gate) Prepare(publicRead bool, limits Limits, path string) (commit func(), err error) {
	opts := g.opts
	opts.PublicRead, opts.Limits = publicRead, limits
	next := withoutTokens(opts)
	if path != "" {
		file, err := ReadFile(path)
		if err != nil {
			return nil, err
		}
		next = withTokens(opts, file)
	}
	return func() { g.rules.Store(next) }, nil
}

// Tokens returns how many tokens and certificates are known.
func (g *Gate) Tokens() int {
	r := g.current()
	return len(r.tokens) + len(r.certificates)
}

func (g *Gate) current() *rules {
	if g == nil {
		return noRules
	}
	return g.rules.Load()
}

// Open reports whether everyone may take IDs without limits: no credentials and no limits
// are configured.
func (g *Gate) Open() bool { return g.current().open }

// Anyone returns a caller without credentials and address. While the gate is open, a short request can
// use it, which costs less than [Gate.Caller]. A stream or a connection needs its own caller, because
// it may outlive a change of the rules.
func (g *Gate) Anyone() *Caller {
	if g == nil {
		return &noCaller
	}
	return &g.anonymous
}

// Caller returns the caller that c belongs to. The error is [ErrUnauthenticated], or a
// [*LimitError] after too many attempts.
func (g *Gate) Caller(c Credentials) (*Caller, error) {
	caller, why := g.lookup(c)
	switch {
	case why == "":
		return caller, nil
	case c.Token == "": // not an attempt to guess one
		return nil, g.attempts.missing(c.Addr, why)
	}
	return nil, g.attempts.failed(c.Addr, why)
}

// Lookup is [Gate.Caller] without a trace: it neither counts nor logs an unknown caller, and
// returns nil.
func (g *Gate) Lookup(c Credentials) *Caller {
	caller, why := g.lookup(c)
	if why != "" {
		return nil
	}
	return caller
}

// lookup returns the caller, or why it is not known.
func (g *Gate) lookup(c Credentials) (_ *Caller, why string) {
	if g == nil {
		return &noCaller, ""
	}
	caller := &Caller{gate: g, addr: c.Addr}
	if c.Token != "" {
		caller.hash = sha256.Sum256([]byte(c.Token))
	}
	if c.Certificate != nil {
		caller.names = namesOf(c.Certificate)
	}
	_, why = g.rules.Load().find(caller, time.Now())
	return caller, why
}

func namesOf(c *x509.Certificate) []string {
	names := append([]string{c.Subject.CommonName}, c.DNSNames...)
	names = append(names, c.EmailAddresses...)
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	return names
}

// A Caller is the owner of some credentials. It is safe for concurrent use and may live as long as
// its connection: it follows changes of the rules.
type Caller struct {
	gate  *Gate
	hash  [sha256.Size]byte // of its token; zero: without one
	names []string          // that its certificate vouches for
	addr  netip.Addr
}

var noCaller Caller // of a nil Gate

// Take reports why the caller may not take n IDs, and counts them. With n = 0 it reports whether
// the caller may take any. The error is [ErrUnauthenticated], [ErrForbidden] or a [*LimitError].
func (c *Caller) Take(scheme, key string, n int64) error {
	if c == nil {
		return ErrUnauthenticated
	}
	r := c.gate.current()
	if r.open {
		return nil
	}
	now := time.Now()
	who, why := r.find(c, now)
	if why != "" {
		return ErrUnauthenticated
	}
	scheme = cmp.Or(scheme, issuer.Segment)
	if !who.mayTake(scheme, key) {
		return who.refusal(fmt.Errorf("%w: this token takes no IDs of this scheme and tag", ErrForbidden))
	}
	if n <= 0 {
		return nil
	}
	return c.gate.charge(c, who, scheme, key, n, now)
}

// Refund takes back that [Caller.Take] has counted n IDs, which the caller did not get.
func (c *Caller) Refund(scheme, key string, n int64) {
	if c == nil {
		return
	}
	r, now := c.gate.current(), time.Now()
	who, _ := r.find(c, now)
	if r.open || who == nil {
		return
	}
	for _, b := range c.gate.due(c, who, scheme, key, now) {
		b.refund(now, n)
	}
}

// May returns an error unless the caller has one of the rights.
func (c *Caller) May(rights Right) error {
	if c == nil {
		return ErrUnauthenticated
	}
	who, why := c.gate.current().find(c, time.Now())
	switch {
	case why != "":
		return ErrUnauthenticated
	case who.rights&rights == 0:
		return who.refusal(fmt.Errorf("%w: this token does not have the right", ErrForbidden))
	}
	return nil
}

// Lease returns an error unless the caller may lease worker IDs of the pool.
func (c *Caller) Lease(pool string) error {
	if err := c.May(Lease); err != nil {
		return err
	}
	who, _ := c.gate.current().find(c, time.Now())
	if who != nil && len(who.pools) > 0 && !slices.ContainsFunc(who.pools, func(p string) bool { return matches(p, pool) }) {
		return fmt.Errorf("%w: this token leases no worker IDs of this pool", ErrForbidden)
	}
	return nil
}

// Name returns the name of the caller's token or certificate; "anonymous" without one.
func (c *Caller) Name() string {
	if c == nil || c.gate == nil {
		return anonymous
	}
	who, _ := c.gate.current().find(c, time.Now())
	if who == nil {
		return anonymous
	}
	return cmp.Or(who.name, anonymous)
}

const anonymous = "anonymous"
