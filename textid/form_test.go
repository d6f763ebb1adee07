package textid_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/textid"
)

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func mustNew(t testing.TB, template string) *textid.Form {
	t.Helper()
	f, err := textid.New(template)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPublished compares check digits with those of published examples.
func TestPublished(t *testing.T) {
	for _, tt := range []struct {
		template string
		n        int64
		want     string
	}{
		{"{n}{check:luhn}", 7992739871, "79927398713"},
		{"{n}{check:luhn}", 37828224631000, "378282246310005"},                  // a card number for tests
		{"{n:4}{check:mod11-10}", 794, "07945"},                                 // of ISO 7064
		{"{n}{check:mod97-10}", 794, "79444"},                                   // of ISO 7064
		{"WEST{n}GB{check:mod97-10}", 12345698765432, "WEST12345698765432GB82"}, // GB82WEST…, the example of an IBAN
		{"{n:base32}", 1234, "16J"},                                             // of Crockford's page
	} {
		if got, err := mustNew(t, tt.template).Encode(textid.Number{N: tt.n}); err != nil || got != tt.want {
			t.Errorf("%s: Encode(%d) = %q, %v, want %q", tt.template, tt.n, got, err, tt.want)
		}
	}
}

// TestBijective reads every text of a few characters: it has one number, or is not a text of the form.
func TestBijective(t *testing.T) {
	const alphabet = "0123456789AZaz-"
	for _, template := range []string{"{n:3}", "{n}", "{n:2}{check:luhn}", "{n}{check:mod11-10}", "{n:base36:2}", "{n:base58:2}", "A{n:base32:2}", "{n:1}{check:mod97-10}", "{key}{n:2}"} {
		f := mustNew(t, template)
		texts := map[string]textid.Number{}
		for key := range 10 {
			for n := range int64(5000) {
				v := textid.Number{N: n, Key: key}
				if text, err := f.Encode(v); err == nil {
					if other, ok := texts[text]; ok {
						t.Fatalf("%s: %q is the text of %+v and %+v", template, text, other, v)
					}
					texts[text] = v
				} else if n <= f.Max() && (f.HasKey() || key == 0) {
					t.Fatalf("%s: Encode(%+v): %v", template, v, err)
				}
			}
		}
		for text, want := range texts {
			if got, err := f.Decode(text); err != nil || got != want {
				t.Errorf("%s: Decode(%q) = %+v, %v, want %+v", template, text, got, err, want)
			}
		}
		for _, text := range words(alphabet, 3) {
			_, known := texts[text]
			if v, err := f.Decode(text); (err == nil) != known {
				t.Errorf("%s: Decode(%q) = %+v, %v, want a number: %t", template, text, v, err, known)
			}
		}
	}
}

// TestPeriods reads the period back with each pair of separators at each place.
func TestPeriods(t *testing.T) {
	separators := words("-./_", 2)
	for _, order := range [][3]string{{"yyyy"}, {"yyyy", "MM"}, {"MM", "yyyy"}, {"yyyy", "MM", "dd"}, {"dd", "MM", "yyyy"}, {"dd", "yyyy", "MM"}, {"MM", "yyyy", "dd"}} {
		for _, before := range separators {
			for _, between := range separators {
				template := "A{period:" + before + order[0] + between + order[1] + between + order[2] + before + "}{n:2}"
				f, err := textid.New(template)
				if err != nil {
					if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(template, "__yyyy") {
						t.Errorf("New(%q): %v", template, err)
					}
					continue
				}
				for _, year := range []int{2, 999, 2026, 9999} {
					v := textid.Number{N: 7, Period: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
					if order[1] != "" {
						v.Period = v.Period.AddDate(0, 11, 0)
					}
					if order[2] != "" {
						v.Period = v.Period.AddDate(0, 0, 29)
					}
					if text, err := f.Encode(v); err != nil {
						t.Errorf("%s: Encode(%+v): %v", template, v, err)
					} else if back, err := f.Decode(text); err != nil || back != v {
						t.Errorf("%s: Decode(%q) = %+v, %v, want %+v", template, text, back, err, v)
					}
				}
			}
		}
	}
}

// words returns all texts of at most n characters.
func words(alphabet string, n int) []string {
	all := []string{""}
	for begin := 0; n > 0; n-- {
		end := len(all)
		for _, text := range all[begin:end] {
			for _, c := range alphabet {
				all = append(all, text+string(c))
			}
		}
		begin = end
	}
	return all
}

// TestCheckDigits changes one digit, or swaps two neighbours, of random texts.
func TestCheckDigits(t *testing.T) {
	for name, swaps := range map[string]bool{"luhn": false, "mod11-10": true, "mod97-10": true} {
		f := mustNew(t, "A-{n:15}{check:"+name+"}")
		missed, total := 0, 0
		for range 2000 {
			text, err := f.Encode(textid.Number{N: rand.Int64N(1e15)})
			if err != nil {
				t.Fatal(err)
			}
			for i := 2; i < len(text); i++ {
				for d := byte('0'); d <= '9'; d++ {
					bad := []byte(text)
					if bad[i] = d; d != text[i] {
						if _, err := f.Decode(string(bad)); err == nil {
							t.Fatalf("%s: %s passes for %s", name, bad, text)
						}
					}
				}
				bad := []byte(text)
				if bad[i], bad[i-1] = bad[i-1], bad[i]; i > 2 && string(bad) != text {
					total++
					if _, err := f.Decode(string(bad)); err == nil {
						missed++
					}
				}
			}
		}
		if name == "mod97-10" && missed > 0 || swaps && missed*40 > total || missed*30 > total {
			t.Errorf("%s misses %d of %d swapped neighbours", name, missed, total)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		template string
		v        textid.Number
		want     error
	}{
		{"{n:6}", textid.Number{N: 1_000_000}, leaf.ErrOverflow},
		{"{n:base58:2}", textid.Number{N: 58 * 58}, leaf.ErrOverflow},
		{"{n}", textid.Number{N: -1}, leaf.ErrInvalid},
		{"{n}", textid.Number{Key: 1}, leaf.ErrInvalid},
		{"{n}", textid.Number{Period: monday}, leaf.ErrInvalid},
		{"{n}{key}", textid.Number{Key: 10}, leaf.ErrInvalid},
		{"{n}{period:yyyy}", textid.Number{}, leaf.ErrInvalid},
		{"{n}{period:yyyy}", textid.Number{Period: monday}, leaf.ErrInvalid},
		{"{n}{period:yyyyMM}", textid.Number{Period: monday}, leaf.ErrInvalid},
		{"{n}{period:yyyyMMdd}", textid.Number{Period: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, leaf.ErrInvalid},
	} {
		if got, err := mustNew(t, tt.template).Append([]byte("x"), tt.v); !errors.Is(err, tt.want) || string(got) != "x" {
			t.Errorf("%s: Append(%+v) = %q, %v, want %v", tt.template, tt.v, got, err, tt.want)
		}
	}
}

func FuzzForm(f *testing.F) {
	for _, template := range []string{"INV-{period:yyyyMMdd}-{n:6}{check:luhn}", "{n:base32:13}", "{key}{n:base58}", "{n}{check:mod97-10}", "{period:MM__yyyy}{n}"} {
		f.Add(template, "INV-20261123-0000424", int64(42), 365, uint8(1))
	}
	f.Fuzz(func(t *testing.T, template, text string, n int64, days int, key uint8) {
		form, err := textid.New(template)
		if err != nil {
			return
		}
		if v, err := form.Decode(text); err == nil {
			if again, err := form.Encode(v); err != nil || again != text {
				t.Errorf("%s: Decode(%q) = %+v, but Encode = %q, %v", template, text, v, again, err)
			}
		}
		v := textid.Number{N: n}
		if form.HasPeriod() {
			v.Period = monday.AddDate(0, 0, days%1_000_000)
		}
		if form.HasKey() {
			v.Key = int(key % 10)
		}
		if text, err := form.Encode(v); err == nil {
			if got, err := form.Decode(text); err != nil || got != v {
				t.Errorf("%s: Encode(%+v) = %q, but Decode = %+v, %v", template, v, text, got, err)
			}
		}
	})
}

func TestAppendAllocs(t *testing.T) {
	f := mustNew(t, "INV-{period:yyyyMMdd}-{n:6}{check:luhn}")
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { _, _ = f.Append(buf, textid.Number{N: 42, Period: monday}) }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, template := range []string{"{n}", "{n:base32:13}", "{n:base58:11}", "{n:base36:13}{check:mod97-10}", "INV-{period:yyyyMMdd}-{n:6}{check:luhn}"} {
		b.Run(template, func(b *testing.B) {
			f := mustNew(b, template)
			v := textid.Number{N: min(f.Max(), math.MaxInt64/3)}
			if f.HasPeriod() {
				v.Period = monday
			}
			var buf []byte
			for b.Loop() {
				buf, _ = f.Append(buf[:0], v)
			}
		})
	}
}

func ExampleForm() {
	form, err := textid.New("INV-{period:yyyyMMdd}-{n:6}{check:luhn}")
	if err != nil {
		panic(err)
	}
	text, _ := form.Encode(textid.Number{N: 42, Period: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)})
	fmt.Println(text)
	back, _ := form.Decode(text)
	fmt.Println(back.N, back.Period.Format(time.DateOnly))
	_, err = form.Decode("INV-20261123-0000435")
	fmt.Println(err)
	// Output:
	// INV-20261123-0000424
	// 42 2026-11-23
	// invalid argument: "INV-20261123-0000435" is no text of the form INV-{period:yyyyMMdd}-{n:6}{check:luhn}: a character is wrong, missing or too many
}
