package config

import (
	"fmt"
	"strconv"
	"strings"
)

// A Size is a number of bytes. Its text is a whole number with a unit, such as 512MiB.
type Size int64

var units = []string{"GiB", "MiB", "KiB"} // from the largest on

func parseSize(text string) (Size, error) {
	for i, unit := range units {
		number, ok := strings.CutSuffix(text, unit)
		shift := 10 * (len(units) - i)
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 63-shift); ok && err == nil && n >= 0 {
			return Size(n << shift), nil
		}
	}
	return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
}

// String returns the text in the largest unit that divides s.
func (s Size) String() string {
	for i, unit := range units {
		if shift := 10 * (len(units) - i); s>>shift<<shift == s && s != 0 {
			return fmt.Sprint(int64(s)>>shift, unit)
		}
	}
	return fmt.Sprint(int64(s), " bytes")
}
