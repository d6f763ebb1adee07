package config

// KeyPaths lists the paths of all keys.
func KeyPaths() []string {
	var paths []string
	for _, k := range keys(new(Config)) {
		paths = append(paths, k.path)
	}
	return paths
}
