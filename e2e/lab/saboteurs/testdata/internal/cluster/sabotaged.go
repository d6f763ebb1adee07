package cluster

import "time"

// sabotagedStart has an empty directory start a cluster by itself.
func sabotagedStart(c Config) error {
	return Create(c, func(dir string) (time.Duration, error) {
		first := c
		first.Dir, first.TLS = dir, TLS{}
		m, err := Open(first)
		if err != nil {
			return 0, err
		}
		defer m.Close()
		return 0, m.Start()
	})
}
