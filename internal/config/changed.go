package config

import "reflect"

// Changed returns the keys whose values differ between two configurations: those that a
// server takes up while it runs, and those that need a restart.
func Changed(old, now Config) (live, fixed []string) {
	before := settings(&old)
	for i, s := range settings(&now) {
		switch {
		case reflect.DeepEqual(s.value.Interface(), before[i].value.Interface()):
		case s.live:
			live = append(live, s.path)
		default:
			fixed = append(fixed, s.path)
		}
	}
	return live, fixed
}

// WithLive returns c with the values of the keys that a server takes up while it runs from now.
func (c Config) WithLive(now Config) Config {
	into := settings(&c)
	for i, s := range settings(&now) {
		if s.live {
			into[i].value.Set(s.value)
		}
	}
	return c
}
