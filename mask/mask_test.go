package mask_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
)

func mustMask(t testing.TB, key, domain, series string) *mask.Mask {
	t.Helper()
	k, err := mask.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	d, err := mask.ParseDomain(domain)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mask.New(k, d, series)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestVectors compares masks with those of another implementation.
func TestVectors(t *testing.T) {
	var file struct {
		Masks []struct {
			Domain, Series, Key string
			Max                 int64 `json:",string"`
			Numbers             []struct {
				N      int64 `json:",string"`
				Hidden int64 `json:",string"`
			}
		}
	}
	data, err := os.ReadFile("../api/vectors/masks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Masks {
		m := mustMask(t, v.Key, v.Domain, v.Series)
		if d, err := mask.ParseDomain(v.Domain); err != nil || d.Max() != v.Max || d.String() != v.Domain {
			t.Errorf("ParseDomain(%q) = %v up to %d, %v, want %d", v.Domain, d, d.Max(), err, v.Max)
		}
		for _, n := range v.Numbers {
			if got, err := m.Hide(n.N); err != nil || got != n.Hidden {
				t.Errorf("%s, %q: Hide(%d) = %d, %v, want %d", v.Domain, v.Series, n.N, got, err, n.Hidden)
			}
			if got, err := m.Reveal(n.Hidden); err != nil || got != n.N {
				t.Errorf("%s, %q: Reveal(%d) = %d, %v, want %d", v.Domain, v.Series, n.Hidden, got, err, n.N)
			}
		}
	}
	if len(file.Masks) < 20 {
		t.Errorf("%d masks: the file is cut", len(file.Masks))
	}
}

var testKey = strings.Repeat("0123456789abcdef", 4)

// TestBijective maps the whole smallest domain, and a million numbers of the largest.
func TestBijective(t *testing.T) {
	m := mustMask(t, testKey, "10^6", "order")
	seen := make([]bool, 1_000_000)
	for n := range int64(1_000_000) {
		hidden, err := m.Hide(n)
		if err != nil || seen[hidden] {
			t.Fatalf("Hide(%d) = %d, %v, a second time", n, hidden, err)
		}
		seen[hidden] = true
	}
	for _, domain := range []string{"53", "63", "10^18"} {
		m := mustMask(t, testKey, domain, "order")
		d, _ := mask.ParseDomain(domain)
		for range 20_000 {
			n := rand.Int64N(d.Max()) + rand.Int64N(2)
			hidden, err := m.Hide(n)
			if err != nil || hidden < 0 || hidden > d.Max() {
				t.Fatalf("%s: Hide(%d) = %d, %v", domain, n, hidden, err)
			}
			if back, err := m.Reveal(hidden); err != nil || back != n {
				t.Fatalf("%s: Reveal(Hide(%d)) = %d, %v", domain, n, back, err)
			}
		}
	}
}

// TestDiffer shows that keys, series and domains have different masks.
func TestDiffer(t *testing.T) {
	other := strings.Repeat("0123456789abcdee", 4)
	seen := map[int64]string{}
	for _, args := range [][3]string{{testKey, "63", "order"}, {testKey, "63", "invoice"}, {other, "63", "order"}, {testKey, "53", "order"}, {testKey, "10^18", "order"}} {
		hidden, err := mustMask(t, args[0], args[1], args[2]).Hide(1)
		if err != nil || seen[hidden] != "" {
			t.Errorf("%q hides 1 as %d, %v, as %s does", args[1:], hidden, err, seen[hidden])
		}
		seen[hidden] = fmt.Sprint(args[1:])
	}
}

func TestErrors(t *testing.T) {
	m := mustMask(t, testKey, "10^6", "order")
	for n, want := range map[int64]error{-1: leaf.ErrInvalid, 1_000_000: leaf.ErrOverflow} {
		if got, err := m.Hide(n); !errors.Is(err, want) {
			t.Errorf("Hide(%d) = %d, %v, want %v", n, got, err, want)
		}
		if got, err := m.Reveal(n); !errors.Is(err, want) {
			t.Errorf("Reveal(%d) = %d, %v, want %v", n, got, err, want)
		}
	}
	for _, text := range []string{"", "54", "10", "10^5", "10^19", "10^06", "10^+6", "10^", "2^53"} {
		if d, err := mask.ParseDomain(text); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("ParseDomain(%q) = %v, %v, want ErrInvalid", text, d, err)
		}
	}
	for _, text := range []string{"", testKey[1:], testKey + "00", "x" + testKey[1:]} {
		if _, err := mask.ParseKey(text); !errors.Is(err, leaf.ErrInvalid) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("ParseKey(%q): %v, want ErrInvalid without the key", text, err)
		}
	}
	if _, err := mask.New(mask.Key{}, mask.Domain{}, "order"); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("New without a domain: %v, want ErrInvalid", err)
	}
}

// TestKeySecret shows that no format prints a key.
func TestKeySecret(t *testing.T) {
	key, err := mask.ParseKey(" " + testKey + "\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(format, key); strings.Contains(got, "0123456789abcdef") || strings.Contains(got, "0x1") {
			t.Errorf("%s prints %s", format, got)
		}
	}
}

func BenchmarkHide(b *testing.B) {
	for _, domain := range []string{"53", "63", "10^9"} {
		b.Run(domain, func(b *testing.B) {
			m := mustMask(b, testKey, domain, "order")
			n := int64(0)
			for b.Loop() {
				_, _ = m.Hide(n)
				n++
			}
		})
	}
}

func ExampleMask() {
	key, err := mask.ParseKey("8f1d0c5b7a69e3d2418fb60c93ae57d2f04b1c6879ead53028c7f1e69db4350a") // from a file
	if err != nil {
		panic(err)
	}
	domain, _ := mask.ParseDomain("10^9")
	orders, _ := mask.New(key, domain, "order")
	for n := int64(1); n <= 3; n++ {
		hidden, _ := orders.Hide(n)
		back, _ := orders.Reveal(hidden)
		fmt.Printf("%09d is %d\n", hidden, back)
	}
	// Output:
	// 440836893 is 1
	// 079997404 is 2
	// 597851666 is 3
}
