package textid

// A checksum appends the check digits of text to dst.
type checksum func(dst, text []byte) []byte

var checks = map[string]struct {
	width   int
	letters bool // it covers letters
	sum     checksum
}{
	"luhn":     {1, false, luhn},
	"mod11-10": {1, false, mod11},
	"mod97-10": {2, true, mod97},
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// luhn doubles every second digit, beginning with the last one.
func luhn(dst, text []byte) []byte {
	sum, double := 0, true
	for i := len(text) - 1; i >= 0; i-- {
		if !isDigit(text[i]) {
			continue
		}
		d := int(text[i] - '0')
		if double {
			d = d/5 + d*2%10 // the sum of the digits of 2d
		}
		sum, double = sum+d, !double
	}
	return append(dst, byte('0'+(10-sum%10)%10))
}

// mod11 is the hybrid system MOD 11,10 of ISO 7064.
func mod11(dst, text []byte) []byte {
	p := 10
	for _, c := range text {
		if !isDigit(c) {
			continue
		}
		s := (p + int(c-'0')) % 10
		if s == 0 {
			s = 10
		}
		p = 2 * s % 11
	}
	return append(dst, byte('0'+(11-p)%10))
}

// mod97 is the system MOD 97-10 of ISO 7064. A letter counts as two digits.
func mod97(dst, text []byte) []byte {
	m := 0
	for _, c := range text {
		switch {
		case isDigit(c):
			m = (m*10 + int(c-'0')) % 97
		case 'A' <= c && c <= 'Z':
			m = (m*100 + int(c-'A') + 10) % 97
		case 'a' <= c && c <= 'z':
			m = (m*100 + int(c-'a') + 10) % 97
		}
	}
	sum := 98 - m*100%97
	return append(dst, byte('0'+sum/10), byte('0'+sum%10))
}
