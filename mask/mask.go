package mask

import (
	"crypto/aes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// A Domain is the set of numbers that a mask maps onto itself: 0 to Max.
type Domain struct {
	radix   uint64
	u, v    int    // digits of the halves
	mu, mv  uint64 // radix^u and radix^v
	written string
}

// The shortest domain has a million numbers, as revision 1 of SP 800-38G demands. The longest ones
// are those that an int64 holds.
const minDecimals, maxDecimals = 6, 18

// ParseDomain returns the domain that text names: "53" and "63" have so many bits, "10^9" has nine
// decimal digits, 6 … 18 of them.
func ParseDomain(text string) (Domain, error) {
	if text == "53" || text == "63" {
		bits, _ := strconv.Atoi(text)
		return newDomain(text, 2, bits), nil
	}
	digits, decimal := strings.CutPrefix(text, "10^")
	n, err := strconv.Atoi(digits)
	if !decimal || err != nil || n < minDecimals || n > maxDecimals || digits != strconv.Itoa(n) {
		return Domain{}, fmt.Errorf("%w: %.20q is no domain of a mask: 53, 63 or 10^%d … 10^%d", leaf.ErrInvalid, text, minDecimals, maxDecimals)
	}
	return newDomain(text, 10, n), nil
}

func newDomain(text string, radix uint64, digits int) Domain {
	d := Domain{radix: radix, u: digits / 2, v: digits - digits/2, written: text}
	d.mu, d.mv = power(radix, d.u), power(radix, d.v)
	return d
}

func power(radix uint64, n int) uint64 {
	p := uint64(1)
	for range n {
		p *= radix
	}
	return p
}

// String returns the text that [ParseDomain] reads.
func (d Domain) String() string { return d.written }

// Max returns the highest number.
func (d Domain) Max() int64 { return int64(d.mu*d.mv - 1) }

// A Key is one for AES-256.
type Key [32]byte

// ParseKey reads the 64 hexadecimal digits of a key; white space around them does not matter. The
// error does not show them.
func ParseKey(text string) (k Key, err error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(k) {
		return Key{}, fmt.Errorf("%w: a key has %d hexadecimal digits", leaf.ErrInvalid, 2*len(k))
	}
	return Key(raw), nil
}

// Fingerprint tells keys apart, and says nothing else about them.
func (k Key) Fingerprint() string {
	sum := sha256.Sum256(append([]byte("leaf mask key\n"), k[:]...))
	return hex.EncodeToString(sum[:6])
}

// String does not show the key, so that no log does.
func (k Key) String() string { return "key " + k.Fingerprint() }

// GoString does not show the key either.
func (k Key) GoString() string { return k.String() }

// A Mask maps the numbers of its domain onto themselves. It is safe for concurrent use.
type Mask struct {
	domain Domain
	cipher ff1
}

// New returns the mask of a series. All who mask or reveal its numbers need the same key, domain and
// name.
func New(key Key, d Domain, series string) (*Mask, error) {
	if d.radix == 0 {
		return nil, fmt.Errorf("%w: the mask has no domain", leaf.ErrInvalid)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("prepare AES: %w", err)
	}
	return &Mask{d, newFF1(block, d, []byte(series))}, nil
}

// Hide returns the masked number of n.
func (m *Mask) Hide(n int64) (int64, error) { return m.apply(n, m.cipher.encrypt) }

// Reveal returns the number that Hide hid as n.
func (m *Mask) Reveal(n int64) (int64, error) { return m.apply(n, m.cipher.decrypt) }

func (m *Mask) apply(n int64, crypt func(a, b uint64) (uint64, uint64)) (int64, error) {
	switch {
	case n < 0:
		return 0, fmt.Errorf("%w: %d is negative", leaf.ErrInvalid, n)
	case n > m.domain.Max():
		return 0, fmt.Errorf("%w: %d is above %d, the highest number of the mask %s", leaf.ErrOverflow, n, m.domain.Max(), m.domain)
	}
	a, b := crypt(uint64(n)/m.domain.mv, uint64(n)%m.domain.mv)
	return int64(a*m.domain.mv + b), nil
}
