package access

const MaxBuckets = maxBuckets

// Tags returns how many tags have a bucket.
func (g *Gate) Tags() int { return g.keys.tags.order.Len() }

// Unknown returns how many names that may be no tags have a bucket.
func (g *Gate) Unknown() int { return g.keys.unknown.order.Len() }
