package drivers

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/leaf-id/leaf/driver/mysql"
)

// maxStartTail bounds the random part of a port.
const maxStartTail = 100_000

// thisNode describes this process like uid-generator: by its container platform, or by its address
// and a port that differs at each start.
func thisNode(env func(string) string) (mysql.Node, error) {
	host, port := env("JPAAS_HOST"), cmp.Or(env("JPAAS_HTTP_PORT"), env("JPAAS_HOST_PORT_8080"))
	switch {
	case host != "" && port != "":
		return mysql.Node{Host: host, Port: port, Container: true}, nil
	case host != "":
		return mysql.Node{}, errors.New("JPAAS_HOST is set in the environment, but neither JPAAS_HTTP_PORT nor JPAAS_HOST_PORT_8080: set both for a container, or none")
	case port != "":
		return mysql.Node{}, errors.New("JPAAS_HTTP_PORT or JPAAS_HOST_PORT_8080 is set in the environment, but not JPAAS_HOST: set both for a container, or none")
	}
	addrs, _ := net.InterfaceAddrs() // without them the name will do
	host, err := ownAddress(addrs)
	return mysql.Node{Host: host, Port: fmt.Sprintf("%d-%d", time.Now().UnixMilli(), rand.IntN(maxStartTail))}, err
}

// ownAddress returns the first of a machine's addresses that others may know, or its name.
func ownAddress(addrs []net.Addr) (string, error) {
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String(), nil
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find this machine's address or name for WORKER_NODE: %w: set JPAAS_HOST and JPAAS_HTTP_PORT", err)
	}
	return name, nil
}
