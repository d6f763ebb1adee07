package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
)

func TestOpenChecksConfig(t *testing.T) {
	one := []string{"h:1"}
	tests := map[string]redis.Config{
		"name one server":         {},
		"the prefix may hold":     {Addrs: one, Prefix: "a b"},
		"up to 64 letters":        {Addrs: one, Prefix: strings.Repeat("a", 65)},
		"user without a password": {Addrs: one, Username: "u"},
		"negative":                {Addrs: one, DB: -1},
		"database 0":              {Addrs: one, Mode: redis.Cluster, DB: 1},
		"name of the primary":     {Addrs: one, Mode: redis.Sentinel},
		"wait is a number":        {Addrs: one, Wait: -1},
		"waitaof is 0 or 1":       {Addrs: one, WaitLocal: 2},
		"wait_timeout":            {Addrs: one, WaitTimeout: 2 * time.Hour},
	}
	for want, config := range tests {
		if _, err := redis.Open(config, nil); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want one that says %q", config, err, want)
		}
	}
}
