package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
)

// IDs are the IDs in an answer: numbers, or UUIDs.
type IDs struct {
	Ranges []leaf.Range
	UUIDs  []uuid.UUID
}

// Len returns the number of IDs.
func (ids *IDs) Len() int64 {
	n := int64(len(ids.UUIDs))
	for _, r := range ids.Ranges {
		n += r.Len()
	}
	return n
}

func (ids *IDs) reset() {
	ids.Ranges, ids.UUIDs = ids.Ranges[:0], ids.UUIDs[:0]
}

// Join adds all of more. Ranges that follow one another become one.
func (ids *IDs) Join(more *IDs) {
	for _, r := range more.Ranges {
		if last := len(ids.Ranges) - 1; last >= 0 && ids.Ranges[last].End == r.Start {
			ids.Ranges[last].End = r.End
			continue
		}
		ids.Ranges = append(ids.Ranges, r)
	}
	ids.UUIDs = append(ids.UUIDs, more.UUIDs...)
}

// add adds one number. Consecutive ones become a range.
func (ids *IDs) add(id int64) {
	if last := len(ids.Ranges) - 1; last >= 0 && ids.Ranges[last].End == id {
		ids.Ranges[last].End++
		return
	}
	ids.Ranges = append(ids.Ranges, leaf.Range{Start: id, End: id + 1})
}

func (ids *IDs) addRange(start, end int64) error {
	if start < 0 || end <= start {
		return failure(notIDs, fmt.Sprintf("the range [%d, %d)", start, end))
	}
	ids.Ranges = append(ids.Ranges, leaf.Range{Start: start, End: end})
	return nil
}

// addLast adds count consecutive numbers that end with last.
func (ids *IDs) addLast(last int64, count int) error {
	return ids.addRange(last-int64(count)+1, last+1)
}

// The kinds of answers that do not fit their request.
const (
	notIDs      = "answer without IDs"
	wrongNumber = "wrong number of IDs"
)

// uuidLength is how long the text of a UUID is; that of a number has at most 19 digits.
const uuidLength = 36

// addText adds an ID as it is written.
func (ids *IDs) addText(text []byte) error {
	if len(text) == uuidLength {
		id, err := uuid.ParseBytes(text)
		if err != nil {
			return failure(notIDs, strconv.Quote(string(text)))
		}
		ids.UUIDs = append(ids.UUIDs, id)
		return nil
	}
	id, err := parseID(text)
	if err != nil {
		return failure(notIDs, strconv.Quote(string(text[:min(len(text), 80)])))
	}
	ids.add(id)
	return nil
}

func (ids *IDs) addLines(text []byte) error {
	for line := range bytes.Lines(text) {
		if err := ids.addText(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}

var errNotID = errors.New("not an ID")

// parseID reads a number written in digits alone. The largest int64 is no ID: nothing
// would be one past it.
func parseID(text []byte) (id int64, err error) {
	if len(text) == 0 || len(text) > 19 {
		return 0, errNotID
	}
	var n uint64 // holds any 19 digits
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errNotID
		}
		n = n*10 + uint64(c-'0')
	}
	if n >= 1<<63-1 {
		return 0, errNotID
	}
	return int64(n), nil
}
