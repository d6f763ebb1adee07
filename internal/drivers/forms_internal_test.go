package drivers

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/driver/ticket"
)

func TestRedisConfig(t *testing.T) {
	tests := []struct {
		url, key string
		want     redis.Config
	}{
		{"redis://h", "redis://h:6379/0?prefix=leaf", redis.Config{Addrs: []string{"h:6379"}}},
		{"REDIS://u:p%40%2F@H:1/3?prefix=a.b-c_D:1", "redis://h:1/3?prefix=a.b-c_D:1",
			redis.Config{Addrs: []string{"h:1"}, Username: "u", Password: "p@/", DB: 3, Prefix: "a.b-c_D:1"}},
		{"redis://:p@[::1]:7/", "redis://[::1]:7/0?prefix=leaf", redis.Config{Addrs: []string{"[::1]:7"}, Password: "p"}},
		{"redis://h?wait=2&wait_timeout=250ms&waitaof=1,1&durability=none", "redis://h:6379/0?prefix=leaf",
			redis.Config{Addrs: []string{"h:6379"}, Wait: 2, WaitTimeout: 250 * time.Millisecond, WaitLocal: 1, WaitReplicas: 1, Volatile: true}},
		{"redis+sentinel://u:p@h2,h1:5/my%20master/2?sentinel_user=s&sentinel_password=t", "redis+sentinel://h1:5,h2:26379/my master/2?prefix=leaf",
			redis.Config{Mode: redis.Sentinel, Addrs: []string{"h2:26379", "h1:5"}, Master: "my master", Username: "u", Password: "p", DB: 2,
				SentinelUsername: "s", SentinelPassword: "t"}},
		{"rediss+cluster://h1:7000,h2:7001", "redis+cluster://h1:7000,h2:7001/0?prefix=leaf",
			redis.Config{Mode: redis.Cluster, Addrs: []string{"h1:7000", "h2:7001"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}},
		{"redis+unix://:p@/run/Redis%20a/r.sock?db=4", "redis+unix:///run/Redis a/r.sock/4?prefix=leaf",
			redis.Config{Addrs: []string{"/run/Redis a/r.sock"}, Password: "p", DB: 4}},
	}
	for _, tt := range tests {
		if tt.want.Prefix == "" {
			tt.want.Prefix = redis.DefaultPrefix
		}
		u, err := find(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		got := u.redisConfig()
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(tls.Config{})); diff != "" || u.err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.url, u.err, diff)
		}
		if b, err := Open(tt.url, nil); err != nil || b.Key != tt.key || b.Close() != nil {
			t.Errorf("%s: %v, %+v, want the key %s", tt.url, err, b, tt.key)
		}
	}
}

func TestRedisRefuses(t *testing.T) {
	refused(t, map[string]string{
		"redis:sesame@h":       "write redis://",
		"redis://":             "malformed",
		"redis://u:sesame@":    "malformed",
		"redis://u:sesame@h:0": "malformed",
		"redis://u:sesame@h:x": "malformed",
		"redis://u:%zz@h":      "percent-encoded",
		"redis://h1,h2":        "name one server",
		"redis://h/x":          "not a number",
		"redis://h/-1":         "negative",
		"redis+sentinel://h":   "name of the primary",
		"redis+cluster://h/1":  "database 0",
		"redis://h?prefix={a}": "prefix",
		"redis://h?prefix=" + strings.Repeat("a", 65): "prefix",
		"redis://h?wait=x":                            "wait",
		"redis://h?wait=-1":                           "wait",
		"redis://h?waitaof=1":                         "waitaof",
		"redis://h?waitaof=1,1x":                      "waitaof",
		"redis://h?waitaof=2,0":                       "waitaof",
		"redis://h?wait_timeout=0s":                   "wait_timeout",
		"redis://h?wait_timeout=2h":                   "wait_timeout",
		"redis://h?wait_timeout=x":                    "wait_timeout",
		"redis://h?wait_timeout=1s":                   "add one of them",
		"redis://h?sentinel_user=s":                   "are for redis+sentinel",
		"redis+cluster://h?sentinel_password=sesame":  "are for redis+sentinel",
		"redis://h?durability=some":                   "none",
		"redis://h?db=1":                              "path of a socket",
		"redis+unix://:sesame@run/redis.sock":         "path of the socket",
		"redis+unix:///run/redis.sock?db=x":           "db is not a number",
		"redis://h?Prefix=a":                          "unknown parameter",
		"redis://h?wait=1&wait=2":                     "more than once",
	})
}

// refused opens each URL as a store, which fails and says why, without the password.
func refused(t *testing.T, tests map[string]string) {
	t.Helper()
	for url, want := range tests {
		err := CheckStore(url)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got error %v, want one that says %q", url, err, want)
		}
	}
}

func TestTicketServers(t *testing.T) {
	tests := []struct {
		url    string
		names  []string
		layout ticket.Layout
	}{
		{"ticket+mysql://u:p@h1/db,u:p@h2/db", []string{"h1:3306/db", "h2:3306/db"}, ticket.Layout{}},
		{"ticket+mysql://h1:3307/a?stride=1000", []string{"h1:3307/a"}, ticket.Layout{Stride: 1000}},
		{"ticket+mysql://u@h1/a,u@h2/b?tls=true&table_per_tag=true", []string{"h1:3306/a", "h2:3306/b"}, ticket.Layout{TablePerTag: true}},
		{"ticket+mysql://u:a%2Cb/c@h1/a,u@[::1]:3306/b", []string{"h1:3306/a", "[::1]:3306/b"}, ticket.Layout{}},
	}
	for _, tt := range tests {
		u, err := find(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		servers, layout := u.ticketServers()
		var names []string
		for _, s := range servers {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff(tt.names, names); diff != "" || u.err != nil || layout != tt.layout || closeTickets(servers) != nil {
			t.Errorf("%s: %+v, %v\n%s", tt.url, layout, u.err, diff)
		}
	}
}

func TestTicketRefuses(t *testing.T) {
	const two = "ticket+mysql://u:sesame@h1/db,u:sesame@h2/db"
	refused(t, map[string]string{
		"ticket+mysql:u:sesame@h1/db":                  "two slashes",
		"ticket+mysql://u:sesame@h1,u:sesame@h2/db":    "server 1: the name of the database is missing",
		"ticket+mysql://u:sesame@h1/db,":               "server 2: a host",
		two + "?stride=0":                              "stride",
		two + "?stride=many":                           "stride",
		two + "?stride=2000000000":                     "stride",
		two + "?table_per_tag=si":                      "table_per_tag",
		two + "?table_per_tag=true&stride=10":          "does not go with",
		two + "?a=%zz":                                 "parameters",
		"ticket+mysql://u:sesame@h1/db,u@h2/db?tls=no": "server 1: tls",
	})
}

// A server asks each host of a URL by itself, a replica too.
func TestPostgresHostAlone(t *testing.T) {
	for _, url := range []string{
		"postgres://u:p@h1,h2:9/db?target_session_attrs=primary", "postgres://[::1],h/db", "postgres://u@/db?host=/a,/b&port=5,6",
	} {
		config := func(only string) *pgx.ConnConfig {
			u, err := find(url)
			if err != nil {
				t.Fatal(err)
			}
			u.only = only
			cfg, err := u.postgresConfig()
			if err := errors.Join(u.err, err); err != nil {
				t.Fatalf("%q of %s: %v", only, url, err)
			}
			return cfg
		}
		all := config("")
		if len(postgresHosts(all)) != 2 {
			t.Errorf("%s: hosts %v", url, postgresHosts(all))
		}
		for _, only := range postgresHosts(all) {
			alone := config(only)
			if hosts := postgresHosts(alone); len(hosts) != 1 || hosts[0] != only || alone.ValidateConnect != nil {
				t.Errorf("%s of %s: hosts %v, validates %v", only, url, hosts, alone.ValidateConnect != nil)
			}
		}
	}
}
