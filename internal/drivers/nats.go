package drivers

import (
	"cmp"
	"strings"

	natsio "github.com/nats-io/nats.go"

	"github.com/leaf-id/leaf/driver/nats"
)

// openNATS reads //user:password@h1:4222,h2:4222/STREAM?parameters. A user without a password is a
// token.
func openNATS(u *target) (*Backend, error) {
	servers, stream := u.cluster("4222")
	opts := nats.Options{Stream: cmp.Or(stream, nats.DefaultStream), Replicas: u.number("replicas", 1, 5)}
	if u.hasPassword {
		opts.Connect = append(opts.Connect, natsio.UserInfo(u.user, u.password))
	} else if u.user != "" {
		opts.Connect = append(opts.Connect, natsio.Token(u.user))
	}
	if encryption := u.modeTLS(); encryption != nil {
		opts.Connect = append(opts.Connect, natsio.Secure(encryption))
	}
	u.key, u.apart = "//"+sortedList(servers)+"/"+opts.Stream, servers
	return newBackend(nats.Open("nats://"+strings.Join(servers, ",nats://"), &opts))
}
