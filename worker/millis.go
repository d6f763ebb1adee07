package worker

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// timeOf returns Unix milliseconds as a time; the zero Time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// unixMilli returns t in Unix milliseconds; 0 for the zero Time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// A milliTime is a time in JSON: Unix milliseconds, 0 for the zero Time.
type milliTime struct{ time.Time }

func (t milliTime) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, unixMilli(t.Time), 10), nil
}

func (t *milliTime) UnmarshalJSON(text []byte) error {
	var ms int64
	err := json.Unmarshal(text, &ms)
	t.Time = timeOf(ms)
	return err
}

// A millis is a duration in JSON, in milliseconds.
type millis time.Duration

func (d millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(d).Milliseconds(), 10), nil
}

func (d *millis) UnmarshalJSON(text []byte) error {
	var ms int64
	if err := json.Unmarshal(text, &ms); err != nil {
		return err
	}
	if limit := int64(math.MaxInt64 / time.Millisecond); ms > limit || ms < -limit {
		return fmt.Errorf("a duration of %d ms", ms)
	}
	*d = millis(time.Duration(ms) * time.Millisecond)
	return nil
}

// An atomicTime is a time in whole milliseconds for concurrent use.
type atomicTime struct{ ms atomic.Int64 }

func (a *atomicTime) load() time.Time   { return timeOf(a.ms.Load()) }
func (a *atomicTime) store(t time.Time) { a.ms.Store(unixMilli(t)) }
