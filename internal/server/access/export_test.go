package access

const MaxBuckets = maxBuckets

// Tags returns how many tags have a bucket.
func (g *Gate) Tags() int { return g.keys.tags.order.Len() }

// Unknown returns how many names that may be no tags have a bucket.
func (g *Gate) Unknown() int { return g.keys.unknown.order.Len() }

// Reload puts a tokens file in force, with the other settings as they are.
func (g *Gate) Reload(path string) error {
	commit, err := g.Prepare(g.opts.PublicRead, g.opts.Limits, path)
	if err == nil {
		commit()
	}
	return err
}
