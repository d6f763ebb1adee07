package drivers

import (
	"strings"

	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// paramTokenFile names a file that holds the token of another Leaf server.
const paramTokenFile = "token_file"

// parseLeaf reads //token@h1:8080,h2:8080?parameters.
func parseLeaf(u *target) (*Backend, error) {
	if err := u.query(paramCA, paramCert, paramKey, paramTokenFile); err != nil {
		return nil, err
	}
	servers, path, err := u.cluster("8080")
	switch {
	case err != nil:
		return nil, err
	case strings.Trim(path, "/") != "":
		return nil, malformed("there is a path behind the host")
	case u.hasPassword:
		return nil, malformed("a token has no colon in it")
	case u.user != "" && u.params.Has(paramTokenFile):
		return nil, invalid("give either a token or %s", paramTokenFile)
	}
	opts := relay.Options{Token: u.user, TokenFile: u.params.Get(paramTokenFile)}
	scheme := "http://"
	if u.scheme == "leafs" {
		scheme = "https://"
	}
	if opts.TLS, err = u.cutTLS(u.scheme == "leafs", "write leafs:// instead"); err != nil {
		return nil, err
	}
	urls := make([]string, len(servers))
	for i, server := range servers {
		urls[i] = scheme + server
	}
	db, err := relay.Open(urls, &opts)
	if err != nil {
		return nil, err
	}
	return &Backend{
		Key:          "//" + sortedList(servers),
		OpenStore:    func() (segment.Store, error) { return db.Store(), nil },
		OpenRegistry: func(RegistryOptions) (worker.Registry, error) { return db.Registry(), nil },
		OnClose:      db.Close,
		Route:        db.Route,
	}, nil
}
