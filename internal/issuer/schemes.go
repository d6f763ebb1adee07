package issuer

import "cmp"

// A Scheme is what others know of a way to make IDs. A new scheme is a row of [Schemes], and a
// [Source].
type Scheme struct {
	Name string
	Path string // of its route in Java Leaf's form, up to the key
	Tags bool   // its keys are tags of the store; those of others are labels
	Text bool   // its IDs are text, not numbers
	Java bool   // Java Leaf has this route, with its own errors
}

// Names of schemes.
const (
	Segment   = "segment" // also that of callers who name none
	Snowflake = "snowflake"
	UID       = "uid"    // the layouts and the modes of Baidu's uid-generator
	Ticket    = "ticket" // the tags of Segment, from ticket servers
	UUID      = "uuid"
)

// Schemes is the table of all schemes, in the order of presentation.
var Schemes = []Scheme{
	{Name: Segment, Path: "/api/segment/get/", Tags: true, Java: true},
	{Name: Snowflake, Path: "/api/snowflake/get/", Java: true},
	{Name: UID, Path: "/api/uid/get/"},
	{Name: Ticket, Path: "/api/ticket/get/", Tags: true},
	{Name: UUID, Path: "/api/uuid/get/", Text: true},
}

// SchemeOf returns the row of a scheme, or the zero row for an unknown one; an empty name means
// [Segment].
func SchemeOf(name string) Scheme {
	name = cmp.Or(name, Segment)
	for i := range Schemes {
		if Schemes[i].Name == name {
			return Schemes[i]
		}
	}
	return Scheme{}
}

// SchemeNames returns the names of all schemes.
func SchemeNames() []string {
	names := make([]string, len(Schemes))
	for i, s := range Schemes {
		names[i] = s.Name
	}
	return names
}
