package redis_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
)

func TestParse(t *testing.T) {
	tests := []struct {
		url, key string
		want     redis.Config
	}{
		{"redis://h", "//h:6379/0?prefix=leaf", redis.Config{Addrs: []string{"h:6379"}}},
		{"REDIS://u:p%40%2F@H:1/3?prefix=a.b-c_D:1", "//h:1/3?prefix=a.b-c_D:1",
			redis.Config{Addrs: []string{"H:1"}, Username: "u", Password: "p@/", DB: 3, Prefix: "a.b-c_D:1"}},
		{"redis://:p@[::1]:7/", "//[::1]:7/0?prefix=leaf", redis.Config{Addrs: []string{"[::1]:7"}, Password: "p"}},
		{"redis://h?wait=2&wait_timeout=250ms&waitaof=1,1&durability=none", "//h:6379/0?prefix=leaf",
			redis.Config{Addrs: []string{"h:6379"}, Wait: 2, WaitTimeout: 250 * time.Millisecond, WaitLocal: 1, WaitReplicas: 1, Volatile: true}},
		{"redis+sentinel://u:p@h2,h1:5/my%20master/2?sentinel_user=s&sentinel_password=t", "//h1:5,h2:26379/my master/2?prefix=leaf",
			redis.Config{Mode: redis.Sentinel, Addrs: []string{"h2:26379", "h1:5"}, Master: "my master", Username: "u", Password: "p", DB: 2,
				SentinelUsername: "s", SentinelPassword: "t"}},
		{"rediss+cluster://h1:7000,h2:7001", "//h1:7000,h2:7001/0?prefix=leaf",
			redis.Config{Mode: redis.Cluster, Addrs: []string{"h1:7000", "h2:7001"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}},
	}
	for _, tt := range tests {
		if tt.want.Prefix == "" {
			tt.want.Prefix = "leaf"
		}
		if tt.want.WaitTimeout == 0 {
			tt.want.WaitTimeout = time.Second
		}
		got := parse(t, tt.url)
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(tls.Config{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, diff)
		}
		if got.Key() != tt.key {
			t.Errorf("%s: key %s, want %s", tt.url, got.Key(), tt.key)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]string{
		"redis:sesame@h":       "write redis://",
		"http://u:sesame@h":    "scheme",
		"redisss://u:sesame@h": "scheme",
		"redis://":             "malformed",
		"redis://u:sesame@":    "malformed",
		"redis://u:sesame@h:0": "malformed",
		"redis://u:sesame@h:x": "malformed",
		"redis://u:%zz@h":      "percent-encoded",
		"redis://sesame@h":     "user without a password",
		"redis://h1,h2":        "name one server",
		"redis://h/x":          "no number",
		"redis://h/-1":         "negative",
		"redis+sentinel://h":   "name of the primary",
		"redis+cluster://h/1":  "database 0",
		"redis://h?prefix={a}": "prefix",
		"redis://h?prefix=" + strings.Repeat("a", 65): "prefix",
		"redis://h?wait=x":                            "wait",
		"redis://h?wait=-1":                           "wait",
		"redis://h?waitaof=1":                         "waitaof",
		"redis://h?waitaof=2,0":                       "waitaof",
		"redis://h?wait_timeout=0s":                   "wait_timeout",
		"redis://h?wait_timeout=2h":                   "wait_timeout",
		"redis://h?wait_timeout=x":                    "wait_timeout",
		"redis://h?durability=some":                   "none",
		"redis://h?Prefix=a":                          "unknown parameter",
		"redis://h?wait=1&wait=2":                     "more than once",
		"redis://h?insecure=true":                     "unknown parameter",
	}
	for url, want := range tests {
		_, err := redis.Parse(url)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got error %v, want one that says %q", url, err, want)
		}
	}
}

func TestOpenChecksConfig(t *testing.T) {
	for _, config := range []redis.Config{{}, {Addrs: []string{"h:1"}, Prefix: "a b"}} {
		if _, err := redis.Open(config, nil); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
