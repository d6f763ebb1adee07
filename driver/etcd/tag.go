package etcd

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// tagVersion is the version of the text form that this release writes.
const tagVersion = 1

// tagText is what the key of a tag holds, in the order in which it is written.
type tagText struct {
	Version     int    `json:"v"`
	MaxID       int64  `json:"max_id"`
	Step        int64  `json:"step"`
	Description string `json:"description,omitempty"`
	Updated     int64  `json:"updated"` // Unix milliseconds, by the clock of who wrote
}

func newTagText(t segment.Tag) tagText {
	return tagText{MaxID: t.MaxID, Step: t.Step, Description: t.Description}
}

func (t tagText) tag(name string) segment.Tag {
	tag := segment.Tag{Name: name, MaxID: t.MaxID, Step: t.Step, Description: t.Description}
	if t.Updated > 0 {
		tag.Updated = time.UnixMilli(t.Updated)
	}
	return tag
}

// written returns t as text, as of now.
func (t tagText) written() string {
	t.Version, t.Updated = tagVersion, time.Now().UnixMilli()
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers and strings always have a text
	}
	return string(text)
}

// readTag reads what written returned.
func readTag(key string, h held) (tagText, error) {
	if h.revision == 0 {
		return tagText{}, leaf.ErrUnknownTag
	}
	var t tagText
	err := json.Unmarshal([]byte(h.text), &t)
	switch {
	case err == nil && t.Version > tagVersion:
		return tagText{}, fmt.Errorf("%w: the key %s has format %d, written by a newer release: use that release", leaf.ErrUnsupported, key, t.Version)
	case err != nil || t.Version != tagVersion || t.MaxID < 0 || t.Step < 1 || t.Step > segment.MaxStep:
		return tagText{}, fmt.Errorf("the key %s holds %.100q, which is no counter: put one there with etcdctl, "+
			`such as {"v":1,"max_id":N,"step":1000}, N above every ID in use`, key, h.text)
	}
	return t, nil
}

// advance moves the counter, or changes nothing and returns an error.
func (t *tagText) advance(n int64) (segment.Grant, error) {
	if n == 0 {
		n = t.Step
	}
	if n > math.MaxInt64-t.MaxID {
		return segment.Grant{}, fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, t.MaxID)
	}
	grant := segment.Grant{Range: leaf.Range{Start: t.MaxID, End: t.MaxID + n}, Step: t.Step}
	t.MaxID += n
	return grant, nil
}

// amend applies a change, or changes nothing and returns an error.
func (t *tagText) amend(change segment.Change) error {
	if change.MaxID != nil && *change.MaxID < t.MaxID && !change.Force {
		return fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, t.MaxID, *change.MaxID)
	}
	if change.MaxID != nil {
		t.MaxID = *change.MaxID
	}
	if change.Step != nil {
		t.Step = *change.Step
	}
	if change.Description != nil {
		t.Description = *change.Description
	}
	return nil
}
