package drivers

import (
	"strings"

	"github.com/leaf-id/leaf/driver/etcd"
)

// openEtcd reads //user:password@h1:2379,h2:2379/prefix?parameters. http has the members' HTTP
// servers, where they are apart.
func openEtcd(u *target) (*Backend, error) {
	u.query("tls", "ca", "cert", "key", "http")
	endpoints, prefix := u.cluster("2379")
	opts := etcd.Options{Prefix: etcd.DefaultPrefix, Username: u.user, Password: u.password, Logger: u.log}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		opts.Prefix = "/" + prefix
	}
	if u.params.Has("http") {
		opts.HTTP = u.hostPorts(u.params.Get("http"), "2379")
	}
	if opts.TLS = u.modeTLS(); u.err != nil {
		return nil, u.err
	}
	db, err := etcd.Open(endpoints, &opts)
	if err != nil {
		return nil, err
	}
	return newBackend("//"+sortedList(endpoints)+opts.Prefix, db, u.apart(endpoints)...), nil
}
