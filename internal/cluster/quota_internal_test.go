package cluster

import (
	"testing"
	"time"
)

// Data that fill three quarters of the quota are found within two minutes. History is not taken for
// data, however fast it grows.
func TestDataAreToldFromHistory(t *testing.T) {
	const quota = 1000
	for _, c := range []struct {
		name   string
		data   int64
		growth int64 // of the history between two looks
		short  bool
	}{
		{"little", 100, 0, false},
		{"little, and much history", 100, 40, false},
		{"little, and very much history", 100, 60, false},
		{"just enough room", 740, 0, false},
		{"too much", 750, 0, true},
		{"too much, and history", 800, 5, true},
	} {
		var live liveData
		now, history, asked := time.Now(), int64(0), 0
		found := false
		for range 10 * time.Minute / upkeepEvery {
			now = now.Add(upkeepEvery)
			short, compact := live.look(now, Database{Size: 2000, Used: c.data + history}, quota)
			if history += c.growth; compact {
				history, asked = 0, asked+1
			}
			found = found || short
		}
		if found != c.short {
			t.Errorf("%s: short of room: %v", c.name, found)
		}
		if asked > 10 || c.short && asked > 2 {
			t.Errorf("%s: asked %d times in ten minutes to forget the history", c.name, asked)
		}
	}
	var live liveData
	now := time.Now()
	for short := false; !short; short, _ = live.look(now, Database{Used: 750}, quota) {
		now = now.Add(upkeepEvery)
	}
	if short, _ := live.look(now.Add(upkeepEvery), Database{Used: 740}, quota); short {
		t.Error("short of room after data were removed")
	}
}
