package frontend

import (
	"strconv"

	"github.com/leaf-id/leaf"
)

// pairs has the two digits of each number below 100.
var pairs = func() (p [200]byte) {
	for i := range 100 {
		p[2*i], p[2*i+1] = '0'+byte(i/10), '0'+byte(i%10)
	}
	return p
}()

// AppendRun appends each number of r, behind before. Of a hundred numbers it formats one, and copies
// ten at a time.
func AppendRun(dst []byte, r leaf.Range, before string) []byte {
	var buf [32]byte
	stem := append(buf[:0], before...)
	for n := r.Start; n < r.End; {
		if n < 100 {
			dst = strconv.AppendInt(append(dst, before...), n, 10)
			n++
			continue
		}
		stem = strconv.AppendInt(stem[:len(before)], n/100, 10)
		count := min(r.End-n, 100-n%100)
		dst = appendHundred(dst, stem, int(n%100), int(count))
		n += count
	}
	return dst
}

// appendHundred appends count numbers from the one with these last two digits on. Stem is the
// text before them.
func appendHundred(dst, stem []byte, last, count int) []byte {
	end, each := last+count, len(stem)+2
	for from := last; last < end; {
		if last%10 == 0 && last-from >= 10 && end-last >= 10 { // the ten before differ in one digit
			size := len(dst)
			dst = append(dst, dst[size-10*each:]...)
			for i := size + each - 2; i < len(dst); i += each {
				dst[i] = pairs[2*last]
			}
			last += 10
			continue
		}
		dst = append(append(dst, stem...), pairs[2*last], pairs[2*last+1])
		last++
	}
	return dst
}

// AppendIDs appends numbers as the JSON of the HTTP API.
func AppendIDs(dst []byte, ranges []leaf.Range) []byte {
	dst = append(dst, idsBefore...)
	first := true
	for _, r := range ranges {
		if first && !r.Empty() {
			dst = strconv.AppendInt(dst, r.Start, 10)
			r.Start, first = r.Start+1, false
		}
		dst = AppendRun(dst, r, idsBetween)
	}
	return append(dst, idsAfter...)
}

const (
	idsBefore  = `{"ids":["`
	idsBetween = `","`
	idsAfter   = "\"]}\n"
)

// IDsSize is the number of bytes that [AppendIDs] appends.
func IDsSize(ranges []leaf.Range) int {
	return len(idsBefore) + runsSize(ranges, len(idsBetween)) + len(idsAfter)
}

// runsSize is the length of numbers with a separator between them.
func runsSize(ranges []leaf.Range, separator int) int {
	digits, n := 0, int64(0)
	for _, r := range ranges {
		digits += runDigits(r)
		n += max(r.Len(), 0)
	}
	return digits + max(int(n)-1, 0)*separator
}

// AppendRanges appends ranges as the JSON of the HTTP API.
func AppendRanges(dst []byte, ranges []leaf.Range) []byte {
	dst = append(dst, rangesBefore...)
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRange(dst, r)
	}
	return append(dst, rangesAfter...)
}

const (
	rangesBefore = `{"ranges":[`
	rangesAfter  = "]}\n"
)

func appendRange(dst []byte, r leaf.Range) []byte {
	dst = strconv.AppendInt(append(dst, `{"start":"`...), r.Start, 10)
	dst = strconv.AppendInt(append(dst, `","count":"`...), r.Len(), 10)
	return append(dst, `"}`...)
}

// RangesSize is the number of bytes that [AppendRanges] appends.
func RangesSize(ranges []leaf.Range) int {
	var buf [longest]byte
	size := len(rangesBefore) + max(len(ranges)-1, 0) + len(rangesAfter)
	for _, r := range ranges {
		size += len(appendRange(buf[:0], r))
	}
	return size
}

// runDigits is how many digits the numbers of r have.
func runDigits(r leaf.Range) (sum int) {
	for !r.Empty() {
		var buf [20]byte
		digits, end := len(strconv.AppendInt(buf[:0], r.Start, 10)), r.End
		switch {
		case r.Start < 0:
			end = r.Start + 1
		case digits < len(powers):
			end = min(end, powers[digits])
		}
		sum += int(end-r.Start) * digits
		r.Start = end
	}
	return sum
}

// powers are those of ten.
var powers = func() (p [19]int64) {
	p[0] = 1
	for i := range p[1:] {
		p[i+1] = 10 * p[i]
	}
	return p
}()
