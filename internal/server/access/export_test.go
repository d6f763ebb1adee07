package access

const MaxBuckets = maxBuckets

// Tags returns how many tags have a bucket.
func (g *Gate) Tags() int { return g.tags.order.Len() }
