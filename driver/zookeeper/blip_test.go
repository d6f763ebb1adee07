package zookeeper_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/zookeeper"
)

// The wall clock is in the year 2099 for a moment.
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
	at := func() int64 {
		var d struct{ Timestamp int64 }
		text, _ := tr.get(tr.path("forever", tr.forever()[len(tr.forever())-1]))
		_ = json.Unmarshal([]byte(text), &d)
		return d.Timestamp
	}
	ahead.Store(int64(73 * 365 * 24 * time.Hour))
	time.Sleep(300 * time.Millisecond)
	ahead.Store(0)
	if at() > time.Now().Add(time.Minute).UnixMilli() {
		t.Errorf("the upload stays at %v for ever, a blip of 300 ms", time.UnixMilli(at()))
	}
}
