package mask

import (
	"crypto/aes"
	"encoding/hex"
	"strconv"
	"testing"
)

// TestNIST runs the samples 7 to 9 of NIST's FF1samples.pdf: those with AES-256.
func TestNIST(t *testing.T) {
	key, _ := hex.DecodeString("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94")
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		radix              int
		tweak, plain, want string
	}{
		{10, "", "0123456789", "6657667009"},
		{10, "39383736353433323130", "0123456789", "1001623463"},
		{36, "3737373770717273373737", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	} {
		tweak, _ := hex.DecodeString(tt.tweak)
		d := newDomain("", uint64(tt.radix), len(tt.plain))
		f := newFF1(block, d, tweak)
		parse := func(text string) (uint64, uint64) {
			a, _ := strconv.ParseUint(text[:d.u], tt.radix, 64)
			b, err := strconv.ParseUint(text[d.u:], tt.radix, 64)
			if err != nil {
				t.Fatal(err)
			}
			return a, b
		}
		a, b := parse(tt.plain)
		wantA, wantB := parse(tt.want)
		if gotA, gotB := f.encrypt(a, b); gotA != wantA || gotB != wantB {
			t.Errorf("radix %d, tweak %q: encrypt(%s) = %d, %d, want %d, %d", tt.radix, tt.tweak, tt.plain, gotA, gotB, wantA, wantB)
		}
		if gotA, gotB := f.decrypt(wantA, wantB); gotA != a || gotB != b {
			t.Errorf("radix %d, tweak %q: decrypt(%s) = %d, %d, want %d, %d", tt.radix, tt.tweak, tt.want, gotA, gotB, a, b)
		}
	}
}

// TestSmallDomains maps every number of domains too small for use.
func TestSmallDomains(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Domain{newDomain("", 2, 2), newDomain("", 2, 9), newDomain("", 2, 16), newDomain("", 10, 3), newDomain("", 10, 4)} {
		m := Mask{d, newFF1(block, d, []byte("order"))}
		seen := make([]bool, d.Max()+1)
		for n := range d.Max() + 1 {
			hidden, err := m.Hide(n)
			if err != nil || hidden < 0 || hidden > d.Max() || seen[hidden] {
				t.Fatalf("radix %d, %d digits: Hide(%d) = %d, %v", d.radix, d.u+d.v, n, hidden, err)
			}
			seen[hidden] = true
			if back, err := m.Reveal(hidden); err != nil || back != n {
				t.Fatalf("radix %d, %d digits: Reveal(Hide(%d)) = %d, %v", d.radix, d.u+d.v, n, back, err)
			}
		}
	}
}
