package config

// KeyPaths lists the paths of all keys.
func KeyPaths() []string {
	var paths []string
	for _, s := range settings(new(Config)) {
		paths = append(paths, s.path)
	}
	return paths
}
