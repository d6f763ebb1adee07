package leafconn

import (
	"fmt"
	"maps"
	"strings"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

// CreateRequest returns the request that creates a tag.
func CreateRequest(t segment.Tag) *leafv1.CreateTagRequest {
	return &leafv1.CreateTagRequest{Name: t.Name, Step: t.Step, MaxId: &t.MaxID, Description: t.Options.Description(), Options: t.Options.Others()}
}

// AlterRequest returns the request that changes a tag.
func AlterRequest(name string, c segment.Change) *leafv1.AlterTagRequest {
	req := &leafv1.AlterTagRequest{Name: name, Step: c.Step, MaxId: c.MaxID, Force: c.Force, Options: maps.Clone(c.Options)}
	if text, ok := c.Options[segment.OptionDescription]; ok {
		req.Description = &text
		delete(req.Options, segment.OptionDescription)
	}
	return req
}

// CheckOptions reports, wrapping [leaf.ErrUnsupported], that a server ignored an option: one of an
// older release knows the description alone.
func CheckOptions(want segment.TagOptions, now *leafv1.Tag) error {
	have := optionsOf(now)
	for name, value := range want {
		if have[name] != value && (name != segment.OptionMask || !strings.HasPrefix(have[name], value+":")) { // with the fingerprint
			return fmt.Errorf("%w: the server has changed the tag, but ignored its option %q: upgrade the server", leaf.ErrUnsupported, name)
		}
	}
	return nil
}

func optionsOf(m *leafv1.Tag) segment.TagOptions {
	return segment.Describe(m.GetDescription()).With(m.GetOptions())
}
