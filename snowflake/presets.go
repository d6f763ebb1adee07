package snowflake

import "time"

// LeafRandomStart is the [Options.RandomStart] of Java Leaf.
const LeafRandomStart = 100

// Preset returns the layout of that name:
//
//   - leaf: 41 bits of milliseconds since 2010-11-04T01:42:54.657Z, 1024 workers, 4096
//     IDs a millisecond; Java Leaf's. It lasts until July 2080.
//   - uid: 31 bits of seconds since 2016-05-20T00:00+08:00, 524,288 workers, 8192 IDs a
//     second; for users of Baidu's uid-generator. It lasts until June 2084.
//   - uid-baidu: 28 bits of those seconds, 4,194,304 workers, 8192 IDs a second: what
//     uid-generator does unless it is configured. It ran out on 2024-11-20, so that it
//     serves to read old IDs.
//   - js53: 41 bits of milliseconds since 2026, 32 workers, 128 IDs a millisecond. Its
//     IDs are at most 2^53-1, so that a JavaScript number holds them. It lasts until
//     September 2095.
func Preset(name string) (layout Layout, ok bool) {
	uid := time.Date(2016, 5, 20, 0, 0, 0, 0, time.FixedZone("", 8*60*60)).UTC()
	switch name {
	case "leaf":
		return Layout{time.UnixMilli(1288834974657).UTC(), time.Millisecond, 41, 10, 12}, true
	case "uid":
		return Layout{uid, time.Second, 31, 19, 13}, true
	case "uid-baidu":
		return Layout{uid, time.Second, 28, 22, 13}, true
	case "js53":
		return Layout{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond, 41, 5, 7}, true
	}
	return Layout{}, false
}

// PresetNames returns the names that [Preset] knows, sorted.
func PresetNames() []string { return []string{"js53", "leaf", "uid", "uid-baidu"} }
