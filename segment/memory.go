package segment

// A Memory keeps this node's knowledge of each counter of one store across restarts, so that the
// node notices writes that the store lost meanwhile. It narrows that loss; it proves nothing (see
// the package documentation). Its methods are safe for concurrent use.
type Memory interface {
	// Recall returns the remembered marks of tag, by source. An unknown tag has no entries.
	Recall(tag string) map[string]Mark

	// Remember replaces the mark of a source of tag. The last write wins, even if it is the lower
	// one.
	Remember(tag, source string, mark Mark) error

	// Forget drops all marks of tag.
	Forget(tag string) error
}

// noMemory remembers nothing.
type noMemory struct{}

func (noMemory) Recall(string) map[string]Mark       { return nil }
func (noMemory) Remember(string, string, Mark) error { return nil }
func (noMemory) Forget(string) error                 { return nil }

// sourceMarks are the marks of one tag. Most tags have one, and there may be very many tags.
type sourceMarks []sourceMark

type sourceMark struct {
	source string
	Mark
}

func marksOf(bySource map[string]Mark) (marks sourceMarks) {
	for source, mark := range bySource {
		marks = append(marks, sourceMark{source, mark})
	}
	return marks
}

// get returns the mark of source, a zero one if nothing is known of it.
func (ms sourceMarks) get(source string) Mark {
	for _, m := range ms {
		if m.source == source {
			return m.Mark
		}
	}
	return Mark{}
}

func (ms *sourceMarks) set(source string, mark Mark) {
	for i := range *ms {
		if (*ms)[i].source == source {
			(*ms)[i].Mark = mark
			return
		}
	}
	*ms = append(*ms, sourceMark{source, mark})
}

// A Mark is a node's knowledge of one source of one tag.
type Mark struct {
	High   int64  // one past the highest ID this node may have issued; after a clean stop: has issued
	Server string // the last [Grant.Server]
}
