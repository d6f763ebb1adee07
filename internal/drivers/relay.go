package drivers

import (
	"slices"
	"strings"

	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/cluster"
)

// paramTokenFile names a file that holds the token of another Leaf server.
const paramTokenFile = "token_file"

// openLeaf reads //token@h1:8080,h2:8080?parameters.
func openLeaf(u *target) (*Backend, error) {
	servers, path := u.cluster("8080")
	opts := relay.Options{Token: u.user, TokenFile: u.text(paramTokenFile)}
	switch {
	case strings.Trim(path, "/") != "":
		u.malformed("there is a path behind the host")
	case u.hasPassword:
		u.malformed("a token has no colon in it")
	case u.user != "" && u.params.Has(paramTokenFile):
		u.fail(invalid("give either a token or %s", paramTokenFile))
	}
	scheme := map[string]string{"leaf": "http://", "leafs": "https://"}[u.scheme]
	opts.TLS = u.tlsConfig(u.scheme == "leafs", "write leafs:// instead")
	urls := make([]string, len(servers))
	for i, server := range servers {
		urls[i] = scheme + server
	}
	u.key, u.apart = "//"+sortedList(servers), servers
	u.traits.Local = !slices.ContainsFunc(servers, reachesFar)
	return newBackend(relay.Open(urls, &opts))
}

// reachesFar reports whether a server, as host:port, may be on another machine.
func reachesFar(server string) bool { return !cluster.IsLoopback(server) }
