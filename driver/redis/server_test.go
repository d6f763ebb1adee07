package redis_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/internal/testserver"
)

// refused checks that calls fail with an error that says want and tells no password.
func refused(t *testing.T, url, want string) {
	t.Helper()
	refusedAs(t, parse(t, url), want)
}

func refusedAs(t *testing.T, config redis.Config, want string) {
	t.Helper()
	s := openStore(t, config)
	_, err := s.Advance(t.Context(), "order", 1)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got error %v, want one that says %q", err, want)
	}
}

func TestUnfitServers(t *testing.T) {
	tests := map[string]struct {
		config [][2]string
		client redis.Config // the rest of it
		want   string       // empty: it is fit
	}{
		"appendonly no":              {[][2]string{{"appendonly", "no"}}, redis.Config{}, "appendonly is no"},
		"appendonly no, accepted":    {[][2]string{{"appendonly", "no"}}, redis.Config{Volatile: true}, ""},
		"eviction":                   {[][2]string{{"maxmemory", "100mb"}, {"maxmemory-policy", "allkeys-lru"}}, redis.Config{}, "set it to noeviction"},
		"eviction of volatile keys":  {[][2]string{{"maxmemory", "100mb"}, {"maxmemory-policy", "volatile-ttl"}}, redis.Config{}, "set it to noeviction"},
		"eviction that never begins": {[][2]string{{"maxmemory", "0"}, {"maxmemory-policy", "allkeys-lru"}}, redis.Config{}, ""},
		"no eviction":                {[][2]string{{"maxmemory", "100mb"}, {"maxmemory-policy", "noeviction"}}, redis.Config{}, ""},
		"memory full":                {[][2]string{{"maxmemory", "1"}, {"maxmemory-policy", "noeviction"}}, redis.Config{}, "memory is full"},
		"too few replicas":           {[][2]string{{"min-replicas-to-write", "1"}}, redis.Config{}, "too few replicas"},
		"waitaof too early":          {nil, redis.Config{WaitLocal: 1}, "waitaof needs 7.2"},
		"not confirmed":              {nil, redis.Config{Wait: 1, WaitTimeout: 50 * time.Millisecond}, "not confirmed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := testserver.Redis(t, &testserver.RedisOptions{Config: tt.config})
			config := tt.client
			config.Addrs = []string{server.Addr()}
			err := open(t, config).Init(t.Context(), nil)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReplicaIsRefused(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	refused(t, p.Replica.URL(), "name its primary, 127.0.0.1:"+strconv.Itoa(p.Primary.Port))
	refused(t, p.Sentinel.URL(), "redis+sentinel://host:26379/MASTER")
	refused(t, strings.Replace(p.URL(), "/leaf", "/other", 1), `no primary named "other"`)
	refused(t, "redis+sentinel://"+p.Primary.Addr()+"/leaf", "")
}

func TestCredentials(t *testing.T) {
	server := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{
		{"requirepass", "sesame"}, {"user", "poor on >sesame ~* +@all -@scripting"}, {"user", "blind on >sesame ~* +@all -info"},
		{"user", "elsewhere on >sesame ~x:* +@all"}, {"user", "modest on >sesame ~{leaf}:* +@read +@write +@scripting +info +config|get +time +wait +select"},
	}})
	at := server.Addr()
	refused(t, "redis://"+at, "wants a password")
	refused(t, "redis://:sesameX@"+at, "check the user name and the password")
	refused(t, "redis://nobody:sesame@"+at, "check the user name and the password")
	refused(t, "redis://poor:sesame@"+at, "lacks a permission")
	refused(t, "redis://blind:sesame@"+at, "lacks a permission")
	refused(t, "redis://elsewhere:sesame@"+at, "lacks a permission")
	for _, user := range []string{"", "default", "modest"} {
		config := parse(t, "redis://"+user+":sesame@"+at+"/"+strconv.Itoa(len(user))) // each in a database of its own
		s := newStore(t, config, order)
		advance(t, s, 1)
	}
	refused(t, "redis://:sesame@"+at+"/99", "DB index is out of range")
}

func TestWrongServers(t *testing.T) {
	refused(t, "redis+cluster://"+shared.Addr(), "cluster support disabled")
	refused(t, "redis://"+cluster.Nodes[0].Addr(), "write redis+cluster://")
	refused(t, "rediss://"+shared.Addr(), "does not speak TLS")
	refused(t, "redis://127.0.0.1:1", "no server answers there")
	refused(t, "redis+cluster://127.0.0.1:1", "no server answers there")
	refused(t, "redis+sentinel://127.0.0.1:1/leaf", "no server answers there")
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() {
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	}()
	refused(t, "redis://"+web.Addr().String(), "HTTP/1.1 400")
}

func TestTLS(t *testing.T) {
	cert, key := testserver.Certificate(t)
	port, server := 0, (*testserver.RedisServer)(nil)
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port = l.Addr().(*net.TCPAddr).Port
		l.Close()
		server, err = testserver.StartRedis(&testserver.RedisOptions{Config: [][2]string{
			{"tls-port", strconv.Itoa(port)}, {"tls-cert-file", cert}, {"tls-key-file", key}, {"tls-ca-cert-file", cert}}})
		if err == nil {
			break
		}
	}
	if server == nil {
		t.Fatal("no server with TLS")
	}
	t.Cleanup(server.Close)
	at := "rediss://127.0.0.1:" + strconv.Itoa(port)
	refused(t, strings.Replace(at, "rediss", "redis", 1), "write rediss")
	refused(t, at, "ca=FILE")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config := parse(t, at)
	config.TLS.RootCAs = x509.NewCertPool()
	config.TLS.RootCAs.AddCert(pair.Leaf)
	refusedAs(t, config, "cert=FILE&key=FILE")
	config.TLS.Certificates = []tls.Certificate{pair}
	s := newStore(t, config, order)
	if got := advance(t, s, 1).Range.Start; got != 1 {
		t.Errorf("got %d", got)
	}
}

func TestLogSaysWhatIsKept(t *testing.T) {
	tests := map[string]struct {
		config [][2]string
		want   string
	}{
		"always":   {nil, "level=INFO msg=\"redis: appendfsync always: a restart loses nothing"},
		"everysec": {[][2]string{{"appendfsync", "everysec"}}, "level=WARN msg=\"redis: appendfsync everysec: a crash"},
		"no":       {[][2]string{{"appendfsync", "no"}}, "level=WARN msg=\"redis: appendfsync no: a crash"},
		"nothing":  {[][2]string{{"appendonly", "no"}}, "level=WARN msg=\"redis: appendonly no: a restart of the server goes back to its last snapshot"},
		"hidden":   {[][2]string{{"user", "default on nopass ~* +@all -config"}}, "may not run CONFIG GET"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := testserver.Redis(t, &testserver.RedisOptions{Config: tt.config})
			config := parse(t, strings.Replace(server.URL(), "redis://", "redis://:sesame@", 1))
			config.Volatile = true
			newStore(t, config, order)
			var log bytes.Buffer
			db, err := redis.Open(config, &redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for range 3 {
				advance(t, db.Store(), 1)
			}
			if text := log.String(); !strings.Contains(text, tt.want) || strings.Count(text, "\n") != 1 || strings.Contains(text, "sesame") {
				t.Errorf("the log says\n%swant one line with %s", text, tt.want)
			}
		})
	}
}
