package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// says checks that an error has each of parts in it.
func says(t testing.TB, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error", what)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error %q does not say %q", what, err, part)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%s: the error %q holds the password", what, err)
	}
}

// both makes one call of a store and one of a registry.
func both(t testing.TB, endpoints []string, o *etcd.Options) (store, registry error) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	began := time.Now()
	_, store = open(t, endpoints, o).Advance(ctx, "order", 1)
	_, registry = openRegistry(t, endpoints, o).Load(ctx, 7)
	if took := time.Since(began); took > 29*time.Second {
		t.Errorf("the errors took %v", took)
	}
	return store, registry
}

func TestNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	tests := []struct {
		endpoint string
		want     []string
	}{
		{gone, []string{gone, "no etcd answers there"}},
		{"no-such-host.invalid:2379", []string{"no-such-host.invalid:2379", "no etcd answers there"}},
		{web.Listener.Addr().String(), []string{web.Listener.Addr().String()}},
	}
	for _, tt := range tests {
		store, registry := both(t, []string{tt.endpoint}, nil)
		says(t, tt.endpoint, store, tt.want...)
		says(t, tt.endpoint, registry, tt.want...)
		t.Log(store)
	}
}

// A server that says nothing costs the time that the caller has, not more.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := open(t, []string{l.Addr().String()}, nil)
	r := openRegistry(t, []string{l.Addr().String()}, nil)
	for what, call := range map[string]func(context.Context) error{
		"advance": func(ctx context.Context) error { _, err := s.Advance(ctx, "order", 1); return err },
		"create":  func(ctx context.Context) error { return s.Create(ctx, order) },
		"load":    func(ctx context.Context) error { _, err := r.Load(ctx, 1); return err },
		"clock":   func(ctx context.Context) error { _, err := r.Clock(ctx); return err },
	} {
		began := time.Now()
		err := call(within(t, 300*time.Millisecond))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
			t.Errorf("%s: got %v after %v", what, err, took)
		}
		says(t, what, err, l.Addr().String())
	}
}

func TestNotCreated(t *testing.T) {
	store, registry := both(t, shared.Endpoints(), newOptions())
	if !errors.Is(store, segment.ErrNotCreated) || !errors.Is(registry, worker.ErrNotCreated) {
		t.Errorf("got %v and %v", store, registry)
	}
}

func TestBadCounter(t *testing.T) {
	o := newOptions()
	s := newStore(t, shared, o)(t)
	for text, want := range map[string]string{
		`{"v":5,"max_id":1,"step":1}`: "newer release", "": "not a counter", "17": "not a counter", `{"v":1}`: "not a counter",
		`{"v":1,"max_id":-1,"step":1}`: "not a counter", `{"v":1,"max_id":1,"step":2147483648}`: "not a counter",
	} {
		put(t, shared.Endpoints(), o.Prefix+"/tags/order", text)
		_, err := s.Advance(t.Context(), "order", 1)
		says(t, text, err, want, "tags/order")
		for _, err = range s.Tags(t.Context()) {
		}
		says(t, text, err, want, "tags/order")
	}
	put(t, shared.Endpoints(), o.Prefix+"/tags/order", ` {"step": 5, "max_id": 100, "v": 1, "note": "by hand"}`)
	if grant, err := s.Advance(t.Context(), "order", 0); err != nil || grant.Range != (leaf.Range{Start: 100, End: 105}) {
		t.Errorf("a counter put by hand: got %v, %v", grant.Range, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for what, err := range map[string]error{
		"no endpoint":   openErr(nil, nil),
		"a URL":         openErr([]string{"http://127.0.0.1:2379"}, nil),
		"a bad port":    openErr([]string{"127.0.0.1:x"}, nil),
		"user alone":    openErr([]string{"127.0.0.1"}, &etcd.Options{Username: "leaf"}),
		"a bad prefix":  openErr([]string{"127.0.0.1"}, &etcd.Options{Prefix: "/a\x00"}),
		"bad HTTP port": openErr([]string{"127.0.0.1"}, &etcd.Options{HTTP: []string{"x:y"}}),
	} {
		if !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func openErr(endpoints []string, o *etcd.Options) error {
	db, err := etcd.Open(endpoints, o)
	if err == nil {
		_ = db.Close()
		return nil
	}
	return err
}

func TestUsers(t *testing.T) {
	c := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true, Args: []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}})
	o := &etcd.Options{Prefix: "/ids"}
	newStore(t, c, o, order)
	newRegistry(t, c, o)
	as := func(user, password string) *etcd.Options {
		return &etcd.Options{Prefix: o.Prefix, Username: user, Password: password}
	}
	early := open(t, c.Endpoints(), as("leaf", "secret")) // before users count
	if _, err := early.Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("a user before users count: %v", err)
	}
	enableUsers(t, connect(t, c.Endpoints()), o.Prefix)
	tests := []struct {
		name           string
		user, password string
		want           string
	}{
		{"no user", "", "", "demands a user"},
		{"wrong password", "leaf", "secret1", "check the user name and the password"},
		{"unknown user", "nobody", "secret", "check the user name and the password"},
		{"no permission", "guest", "secret", "grant-permission ROLE --prefix=true readwrite /ids/"},
	}
	for _, tt := range tests {
		store, registry := both(t, c.Endpoints(), as(tt.user, tt.password))
		says(t, tt.name, store, tt.want)
		says(t, tt.name, registry, tt.want)
	}
	good, registry := both(t, c.Endpoints(), as("leaf", "secret"))
	if err := errors.Join(good, registry); err != nil {
		t.Error(err)
	}
	if _, err := early.Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("a user from before users counted: %v", err)
	}
	if err := errors.Join(c.Kill(0), c.Restart(0)); err != nil { // which forgets all tokens
		t.Fatal(err)
	}
	eventually(t, func() error { _, err := early.Advance(t.Context(), "order", 1); return err })
}

// eventually makes a call until it succeeds: the first one may notice that a connection
// was lost.
func eventually(t testing.TB, call func() error) {
	t.Helper()
	ctx := within(t, time.Minute)
	for err := call(); err != nil; err = call() {
		if ctx.Err() != nil {
			t.Error(err)
			return
		}
	}
}

func enableUsers(t testing.TB, c *clientv3.Client, prefix string) {
	t.Helper()
	ctx := t.Context()
	_, err1 := c.UserAdd(ctx, "root", "secret")
	_, err2 := c.UserGrantRole(ctx, "root", "root")
	_, err3 := c.RoleAdd(ctx, "ids")
	_, err4 := c.RoleGrantPermission(ctx, "ids", prefix+"/", clientv3.GetPrefixRangeEnd(prefix+"/"), clientv3.PermissionType(clientv3.PermReadWrite))
	_, err5 := c.UserAdd(ctx, "leaf", "secret")
	_, err6 := c.UserGrantRole(ctx, "leaf", "ids")
	_, err7 := c.UserAdd(ctx, "guest", "secret")
	_, err8 := c.AuthEnable(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.files(t)
	c := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true, Cert: cert, Key: key})
	strict := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true, Cert: cert, Key: key, ClientCA: ca.file(t)})
	mine, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		at   *testserver.EtcdCluster
		tls  *tls.Config
		want string // empty: it works
	}{
		{"trusted", c, &tls.Config{RootCAs: ca.pool()}, ""},
		{"no authority", c, &tls.Config{}, "ca=FILE"},
		{"another authority", c, &tls.Config{RootCAs: other.pool()}, "ca=FILE"},
		{"no encryption", c, nil, "tls=true"},
		{"encryption where there is none", shared, &tls.Config{RootCAs: ca.pool()}, "remove tls"},
		{"certificate", strict, &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{mine}}, ""},
		{"no certificate", strict, &tls.Config{RootCAs: ca.pool()}, "cert=FILE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOptions()
			o.TLS = tt.tls
			err := openDB(t, tt.at.Endpoints(), o).InitRegistry(within(t, 8*time.Second))
			_, clockErr := openRegistry(t, tt.at.Endpoints(), o).Clock(within(t, 8*time.Second))
			if tt.want == "" {
				if err := errors.Join(err, clockErr); err != nil {
					t.Error(err)
				}
				return
			}
			says(t, tt.name, err, tt.want)
			if clockErr == nil {
				t.Error("the clock was told")
			}
			t.Log(clockErr)
		})
	}
}

// An authority signs certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = certify(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

// certify signs a certificate; without an authority by itself.
func certify(t testing.TB, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.BasicConstraintsValid = true
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) file(t testing.TB) string { return writePEM(t, "CERTIFICATE", a.cert.Raw) }

// files returns a certificate, for servers and clients, and its key.
func (a *authority) files(t testing.TB) (cert, key string) {
	t.Helper()
	c, k := certify(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", c.Raw), writePEM(t, "PRIVATE KEY", der)
}

func writePEM(t testing.TB, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The member's HTTP server has the time. Another server, or an old release, has not.
func TestClock(t *testing.T) {
	serve := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	tests := []struct {
		name string
		http string
		want string
	}{
		{"another release", serve(200, `{"etcdserver":"4.0.0","etcdcluster":"not_decided"}`), ""},
		{"odd version", serve(200, `odd`), ""},
		{"too old", serve(200, `{"etcdserver":"3.3.27","etcdcluster":"3.3.0"}`), "3.4 or later"},
		{"no etcd", serve(404, ``), "is it etcd?"},
	}
	for _, tt := range tests {
		o := newOptions()
		o.HTTP = []string{tt.http}
		newRegistry(t, shared, o)
		now, err := openRegistry(t, shared.Endpoints(), o).Clock(t.Context())
		if tt.want != "" {
			says(t, tt.name, err, tt.want)
		} else if off := time.Since(now); err != nil || off < -time.Second || off > 3*time.Second {
			t.Errorf("%s: got %v, %v", tt.name, now, err)
		}
	}
}
