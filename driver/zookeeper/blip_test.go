package zookeeper_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/zookeeper"
)

// The wall clock is in the year 2099 for a moment. Uploads continue, but without that time: a Java
// server would not start before it.
func TestWallClockBlip(t *testing.T) {
	tr := newTree(t)
	var ahead atomic.Int64
	l := tr.leaf(t, func(o *zookeeper.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.UploadEvery = 50 * time.Millisecond
	})
	id, err := l.Assign(t.Context(), 1023)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, l, id)
	read := func() (uploaded time.Time, version int32) {
		var d struct{ Timestamp int64 }
		text, stat := tr.get(tr.path("forever", tr.forever()[len(tr.forever())-1]))
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return time.UnixMilli(d.Timestamp), stat.Version
	}
	for _, blip := range []time.Duration{0, 73 * 365 * 24 * time.Hour, 0} {
		ahead.Store(int64(blip))
		_, before := read()
		eventually(t, "three uploads", func() bool { _, version := read(); return version >= before+3 })
		if uploaded, _ := read(); time.Since(uploaded).Abs() > time.Minute {
			t.Errorf("with a wall clock that is %v ahead the upload says %v", blip, uploaded)
		}
	}
}
