package drivers

import (
	"strings"

	"github.com/leaf-id/leaf/driver/etcd"
)

// openEtcd reads //user:password@h1:2379,h2:2379/prefix?parameters. http has the members' HTTP
// servers, where they are apart.
func openEtcd(u *target) (*Backend, error) {
	endpoints, prefix := u.cluster("2379")
	opts := etcd.Options{Prefix: etcd.DefaultPrefix, Username: u.user, Password: u.password, Logger: u.log}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		opts.Prefix = "/" + prefix
	}
	if list, ok := u.param("http"); ok {
		opts.HTTP = u.hostPorts(list, "2379")
	}
	opts.TLS = u.modeTLS()
	u.key, u.apart = "//"+sortedList(endpoints)+opts.Prefix, endpoints
	return newBackend(etcd.Open(endpoints, &opts))
}
