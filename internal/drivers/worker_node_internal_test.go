package drivers

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/mysql"
)

func TestThisNode(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want mysql.Node
		err  string
	}{
		"container":      {map[string]string{"JPAAS_HOST": "h", "JPAAS_HTTP_PORT": "80"}, mysql.Node{Host: "h", Port: "80", Container: true}, ""},
		"another port":   {map[string]string{"JPAAS_HOST": "h", "JPAAS_HOST_PORT_8080": "81"}, mysql.Node{Host: "h", Port: "81", Container: true}, ""},
		"both ports":     {map[string]string{"JPAAS_HOST": "h", "JPAAS_HTTP_PORT": "80", "JPAAS_HOST_PORT_8080": "81"}, mysql.Node{Host: "h", Port: "80", Container: true}, ""},
		"host alone":     {map[string]string{"JPAAS_HOST": "h"}, mysql.Node{}, "JPAAS_HOST is set in the environment, but neither"},
		"port alone":     {map[string]string{"JPAAS_HTTP_PORT": "80"}, mysql.Node{}, "but not JPAAS_HOST"},
		"old port alone": {map[string]string{"JPAAS_HOST_PORT_8080": "80"}, mysql.Node{}, "but not JPAAS_HOST"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := thisNode(func(key string) string { return tt.env[key] })
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v, %v, want %+v, %q", got, err, tt.want, tt.err)
			}
		})
	}
	seen := make(map[string]bool)
	for range 50 {
		n, err := thisNode(func(string) string { return "" })
		if err != nil || n.Host == "" || n.Container || !regexp.MustCompile(`^1\d{12}-\d{1,5}$`).MatchString(n.Port) {
			t.Fatalf("no container: %+v, %v", n, err)
		}
		seen[n.Port] = true
	}
	if len(seen) < 45 {
		t.Errorf("of 50 ports %d differ", len(seen))
	}
}

func TestOwnAddress(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"127.0.0.1/8 ::1/128":                    name,
		"127.0.0.1/8 169.254.1.1/16 10.0.0.7/24": "10.0.0.7",
		"fe80::1/64 2001:db8::7/64 10.0.0.7/24":  "2001:db8::7",
		"192.0.2.1/24 10.0.0.7/24":               "192.0.2.1",
		"":                                       name,
		"fe80::1/64 169.254.1.1/16 127.0.0.1/8 ::1/8": name,
	}
	for list, want := range tests {
		var addrs []net.Addr
		for text := range strings.FieldsSeq(list) {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			network.IP = ip
			addrs = append(addrs, network)
		}
		if got, err := ownAddress(addrs); got != want || err != nil {
			t.Errorf("ownAddress(%s) = %q, %v, want %q", list, got, err, want)
		}
	}
}
