package server_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var serial int64

// sign returns a certificate for name, signed by parent, or by itself if that is nil.
func sign(t *testing.T, name string, parent *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
	}
	signer := &authority{template, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, key}
}

// write writes the certificate and its key to NAME.pem and NAME.key.
func (a *authority) write(t *testing.T, name string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".key": {Type: "PRIVATE KEY", Bytes: der}, name + ".pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) pair() []tls.Certificate {
	return []tls.Certificate{{Certificate: [][]byte{a.cert.Raw}, PrivateKey: a.key}}
}

// An encrypted is a server with TLS.
type encrypted struct {
	*running
	root *authority
	file string // of its certificate, without its extension
}

// ways runs a test without TLS and with it.
func ways(t *testing.T, test func(t *testing.T, way func(*server.Options))) {
	t.Run("plain", func(t *testing.T) { test(t, func(*server.Options) {}) })
	t.Run("TLS", func(t *testing.T) {
		cert, key := testserver.Certificate(t)
		test(t, func(o *server.Options) { o.Config.TLS.Cert, o.Config.TLS.Key = cert, key })
	})
}

func runTLS(t *testing.T, edit func(*server.Options)) *encrypted {
	t.Helper()
	e := &encrypted{root: sign(t, "root", nil), file: filepath.Join(t.TempDir(), "server")}
	sign(t, "first", e.root).write(t, e.file)
	e.running = run(t, nil, func(o *server.Options) {
		o.Config.TLS.Cert, o.Config.TLS.Key = e.file+".pem", e.file+".key"
		if edit != nil {
			edit(o)
		}
	})
	return e
}

// trusting returns a client that trusts the server; it speaks HTTP/2 or HTTP/1 alone.
func (e *encrypted) trusting(t *testing.T, http2 bool, conf *tls.Config) *http.Client {
	conf.RootCAs = e.root.pool()
	transport := &http.Transport{TLSClientConfig: conf, Protocols: protocols(!http2, false)}
	transport.Protocols.SetHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask returns the answer of healthz, and which certificate the server has.
func (e *encrypted) ask(c *http.Client, path string) (answer, name string, err error) {
	res, err := c.Get("https://" + e.addr + path)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprint(res.Proto, " ", res.StatusCode, " ", string(body)), res.TLS.PeerCertificates[0].Subject.CommonName, err
}

func TestTLS(t *testing.T) {
	e := runTLS(t, nil)
	for http2, want := range map[bool]string{false: "HTTP/1.1 200 ok", true: "HTTP/2.0 200 ok"} {
		if answer, _, err := e.ask(e.trusting(t, http2, new(tls.Config)), "/healthz"); answer != want || err != nil {
			t.Errorf("%q, %v, want %q", answer, err, want)
		}
	}
	if _, _, err := e.ask(e.trusting(t, false, &tls.Config{MaxVersion: tls.VersionTLS11}), "/healthz"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	plain := dialTo(t, e.addr)
	fmt.Fprint(plain, getRequest("/api/segment/get/order"))
	if status, body := readAnswer(t, bufio.NewReader(plain)); status != http.StatusBadRequest || !strings.Contains(body, "HTTPS") {
		t.Errorf("without TLS: %d %s", status, body)
	}
	until(t, "logs its address", func() bool { return strings.Contains(e.log.String(), "url=https://"+e.addr) })
}

// The Redis protocol is encrypted too, and then spoken in no other way.
func TestTLSOfRedisProtocol(t *testing.T) {
	e := runTLS(t, withRESP)
	conn, err := tls.Dial("tcp", e.resp, &tls.Config{RootCAs: e.root.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "INCR order\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != ":1\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	plain, in := e.dialRESP(t)
	fmt.Fprint(plain, "INCR order\r\nINCR order\r\n")
	if answer, _ := io.ReadAll(in); string(answer) != "-ERR connect with TLS\r\n" {
		t.Errorf("without TLS: %q", answer)
	}
}

// New certificates are used for new connections; those that are open stay. Files that cannot
// be used change nothing.
func TestNewCertificates(t *testing.T) {
	e := runTLS(t, func(o *server.Options) { o.SetFilesInterval(5 * time.Millisecond) })
	open, fresh := e.trusting(t, true, new(tls.Config)), func() *http.Client { return e.trusting(t, true, new(tls.Config)) }
	wantName := func(c *http.Client, want string) {
		t.Helper()
		if _, name, err := e.ask(c, "/healthz"); name != want {
			t.Errorf("the server is %q, %v, want %q", name, err, want)
		}
	}
	wantName(open, "first")
	if err := os.WriteFile(e.file+".pem", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the broken file is noticed", func() bool {
		wantName(fresh(), "first")
		return strings.Contains(e.log.String(), "the old one stays in force")
	})
	sign(t, "second", e.root).write(t, e.file)
	until(t, "the new one is used", func() bool {
		_, name, err := e.ask(fresh(), "/healthz")
		return err == nil && name == "second"
	})
	wantName(open, "first")
}

// With client_ca only clients with a certificate connect, and the tokens file can give one
// rights.
func TestClientCertificates(t *testing.T) {
	clients, others := sign(t, "clients", nil), sign(t, "others", nil)
	ca := filepath.Join(t.TempDir(), "clients")
	clients.write(t, ca)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens: [{name: shop, certificate: shop.example, take: [order]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := runTLS(t, func(o *server.Options) { o.Config.TLS.ClientCA, o.Config.TokensFile = ca+".pem", tokens })
	for name, tt := range map[string]struct {
		client *tls.Config
		path   string
		want   string // "": the connection fails
	}{
		"none":         {new(tls.Config), "/healthz", ""},
		"foreign":      {&tls.Config{Certificates: sign(t, "shop.example", others).pair()}, "/healthz", ""},
		"unknown":      {&tls.Config{Certificates: sign(t, "x", clients).pair()}, "/api/segment/get/order", "401"},
		"with a right": {&tls.Config{Certificates: sign(t, "shop.example", clients).pair()}, "/api/segment/get/order", "200 "},
		"without":      {&tls.Config{Certificates: sign(t, "shop.example", clients).pair()}, "/api/segment/get/other", "403"},
	} {
		for _, http2 := range []bool{false, true} {
			answer, _, err := e.ask(e.trusting(t, http2, tt.client.Clone()), tt.path)
			if !strings.Contains(answer, tt.want) || (err == nil) != (tt.want != "") {
				t.Errorf("%s: %q, %v, want %q", name, answer, err, tt.want)
			}
		}
	}
}

func TestBadCertificates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server")
	sign(t, "a", nil).write(t, file)
	sign(t, "b", nil).write(t, file+"2")
	for name, files := range map[string][3]string{
		"missing":    {file + ".none", file + ".key", ""},
		"mismatched": {file + ".pem", file + "2.key", ""},
		"no CA":      {file + ".pem", file + ".key", file + ".key"},
	} {
		opts := server.Options{Config: segmentOnly(t), Store: storeBackend(nil)}
		opts.Config.TLS.Cert, opts.Config.TLS.Key, opts.Config.TLS.ClientCA = files[0], files[1], files[2]
		if _, err := server.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "tls.c") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A certificate that ends soon is worth a line in the log, and no more than one.
func TestEndOfCertificateIsLogged(t *testing.T) {
	e := runTLS(t, nil)
	const line = "the certificate is valid until"
	until(t, "a line", func() bool { return strings.Contains(e.log.String(), line) })
	e.stop()
	e.wantStop(t)
	if n := strings.Count(e.log.String(), line); n != 1 {
		t.Errorf("%d lines", n)
	}
}
