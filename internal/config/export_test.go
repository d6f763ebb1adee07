package config

// KeyPaths lists the paths of all keys.
func KeyPaths() []string {
	var paths []string
	for _, s := range settings(new(Config)) {
		paths = append(paths, s.path)
	}
	return paths
}

// LivePaths lists the keys that a reload takes up.
func LivePaths() (paths []string) {
	for _, s := range settings(new(Config)) {
		if s.live {
			paths = append(paths, s.path)
		}
	}
	return paths
}
