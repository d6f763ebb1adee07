package ticket

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// A URL is what a store URL says of a set of ticket servers.
type URL struct {
	// Servers has one URL for each server, from the two slashes on: the user, the
	// password, the host and the database, and the parameters that are not the
	// layout's, which all servers share.
	Servers []string

	Layout Layout
}

// ParseURL reads what follows the scheme and its colon in
//
//	ticket+mysql://user:password@host1:3306/db,user:password@host2:3306/db?stride=1000
//
// A comma in a user name, a password or the name of a database is written %2C, a
// question mark %3F. The parameters stride and table_per_tag are the [Layout]'s. Errors
// wrap [leaf.ErrInvalid] and quote nothing that may be a password.
func ParseURL(rest string) (URL, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return URL{}, badURL("two slashes are missing after the scheme")
	}
	list, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return URL{}, badURL("the parameters are malformed")
	}
	var u URL
	if u.Layout, err = cutLayout(params); err != nil {
		return URL{}, err
	}
	suffix := ""
	if len(params) > 0 {
		suffix = "?" + params.Encode()
	}
	for i, server := range strings.Split(list, ",") {
		if at := strings.LastIndex(server, "@"); !strings.Contains(server[at+1:], "/") {
			return URL{}, badURL(fmt.Sprintf("server %d lacks its host or its database", i+1))
		}
		u.Servers = append(u.Servers, "//"+server+suffix)
	}
	return u, nil
}

// cutLayout takes the layout's parameters out of params.
func cutLayout(params url.Values) (Layout, error) {
	var l Layout
	var err error
	if params.Has("stride") {
		if l.Stride, err = strconv.ParseInt(params.Get("stride"), 10, 64); err != nil || l.Stride < 1 {
			return Layout{}, badURL(fmt.Sprintf("stride is no number in 1 … %d", MaxStride))
		}
	}
	if params.Has("table_per_tag") {
		if l.TablePerTag, err = strconv.ParseBool(params.Get("table_per_tag")); err != nil {
			return Layout{}, badURL("table_per_tag is neither true nor false")
		}
	}
	params.Del("stride")
	params.Del("table_per_tag")
	return l, l.check()
}

func badURL(what string) error {
	return fmt.Errorf("%w: %s: write ticket+mysql://user:password@host1:3306/db,user:password@host2:3306/db, "+
		"with reserved characters percent-encoded", leaf.ErrInvalid, what)
}
