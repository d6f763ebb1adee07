package drivers

import (
	"strings"

	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// paramTokenFile names a file that holds the token of another Leaf server.
const paramTokenFile = "token_file"

// openLeaf reads //token@h1:8080,h2:8080?parameters.
func openLeaf(u *target) (*Backend, error) {
	u.query(append(tlsParams, paramTokenFile)...)
	servers, path := u.cluster("8080")
	opts := relay.Options{Token: u.user, TokenFile: u.params.Get(paramTokenFile)}
	switch {
	case strings.Trim(path, "/") != "":
		u.malformed("there is a path behind the host")
	case u.hasPassword:
		u.malformed("a token has no colon in it")
	case u.user != "" && u.params.Has(paramTokenFile):
		u.fail(invalid("give either a token or %s", paramTokenFile))
	}
	scheme := map[string]string{"leaf": "http://", "leafs": "https://"}[u.scheme]
	if opts.TLS = u.cutTLS(u.scheme == "leafs", "write leafs:// instead"); u.err != nil {
		return nil, u.err
	}
	urls := make([]string, len(servers))
	for i, server := range servers {
		urls[i] = scheme + server
	}
	db, err := relay.Open(urls, &opts)
	return &Backend{Key: "//" + sortedList(servers), DB: relayDB{DB: db},
		Hosts: hostsAlone(servers, func(i int) (*relay.DB, error) { return relay.Open(urls[i:i+1], &opts) })}, err
}

// A relayDB is other servers.
type relayDB struct {
	*relay.DB
	nothing
}

func (d relayDB) Store() (segment.Store, error)                      { return d.DB.Store(), nil }
func (d relayDB) Registry(*RegistryOptions) (worker.Registry, error) { return d.DB.Registry(), nil }
func (d relayDB) Close() error                                       { return d.DB.Close() }
