package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// issueToken runs 'leaf token new' and returns the path of the file with the token; the entry
// is added to the tokens file.
func issueToken(t *testing.T, tokens string, args ...string) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "token")
	code, entry, stderr := leafRun(t.Context(), append([]string{"token", "new", "--secret-file", secret}, args...)...)
	if code != 0 {
		t.Fatal(stderr)
	}
	f, err := os.OpenFile(tokens, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		entry = "tokens:\n" + entry
	}
	if _, err := f.WriteString(entry); err != nil {
		t.Fatal(err)
	}
	return secret
}

// From 'leaf token new' to a server with the token, and SIGHUP for a new one.
func TestTokensOnTheCommandLine(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	shop := issueToken(t, tokens, "--name", "shop", "--take", "leaf-segment-*")
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_TOKENS_FILE="+tokens))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	try := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := leafRun(t.Context(), append(args, "--server", p.url)...)
		if (code == 0) != (want == "") || !strings.Contains(stderr, want) {
			t.Errorf("leaf %v: exit code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	try("a valid token is needed", "next", "leaf-segment-test")
	try("--token-file FILE or LEAF_TOKEN", "status")
	try("", "next", "leaf-segment-test", "--token-file", shop)
	try("not allowed", "next", "other", "--token-file", shop)
	try("not allowed", "tag", "list", "--token-file", shop)
	ops := issueToken(t, tokens, "--name", "ops", "--right", "admin")
	sendSignal(t, p, syscall.SIGHUP)
	if _, err := p.waitFor(regexp.MustCompile(`the configuration was read again" .*tokens=2`)); err != nil {
		t.Fatal(err)
	}
	try("", "tag", "create", "other", "--step", "5", "--token-file", ops)
	secret, err := os.ReadFile(ops)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEAF_TOKEN", string(secret))
	try("", "tag", "list")
	if log := p.text(); strings.Contains(log, strings.TrimSpace(string(secret))) {
		t.Errorf("the log holds a token:\n%s", log)
	}
}

// Without its configured tokens file a server does not start, because it would be open.
func TestNoTokensFile(t *testing.T) {
	t.Setenv("LEAF_TOKENS_FILE", filepath.Join(t.TempDir(), "none.yaml"))
	t.Setenv("LEAF_DATA", t.TempDir())
	code, _, stderr := leafRun(t.Context(), "serve", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(stderr, "none.yaml: no such file or directory") || !strings.Contains(stderr, "leaf token new") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// The commands talk to a server with TLS that --ca-file vouches for, and to no other.
func TestTLSOnTheCommandLine(t *testing.T) {
	files := filepath.Join(t.TempDir(), "tls")
	writeCertificate(t, files)
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_TLS_CERT="+files+".pem", "LEAF_TLS_KEY="+files+".key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	code, _, stderr := leafRun(t.Context(), "next", "leaf-segment-test", "--server", p.url)
	if code != 1 || !strings.Contains(stderr, "is not trusted: x509: certificate signed by unknown authority") || !strings.Contains(stderr, "--ca-file") {
		t.Errorf("without --ca-file: exit code %d:\n%s", code, stderr)
	}
	code, stdout, stderr := leafRun(t.Context(), "next", "leaf-segment-test", "--server", p.url, "--ca-file", files+".pem")
	if code != 0 || stdout == "" {
		t.Errorf("with --ca-file: exit code %d:\n%s", code, stderr)
	}
}

// writeCertificate writes a certificate for 127.0.0.1, and its key, to NAME.pem and NAME.key.
func writeCertificate(t *testing.T, name string) {
	t.Helper()
	srv := httptest.NewTLSServer(nil) // it has one
	defer srv.Close()
	pair := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, name + ".key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The hash is that of the entry.
func TestTokenHash(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	secret, err := os.ReadFile(issueToken(t, tokens, "--name", "a", "--take", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"token", "hash"})
	root.SetIn(bytes.NewReader(secret))
	root.SetOut(&out)
	if err := root.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	entry, err := os.ReadFile(tokens)
	if err != nil || !strings.Contains(string(entry), "hash: "+strings.TrimSpace(out.String())+"\n") {
		t.Errorf("the hash is %s, the entry\n%s", &out, entry)
	}
}
