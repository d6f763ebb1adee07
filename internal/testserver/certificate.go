package testserver

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate is [NewCertificate] for a test.
func Certificate(t TB) (cert, key string) {
	t.Helper()
	dir, cert, key, err := NewCertificate()
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err != nil {
		t.Fatalf("%v", err)
	}
	return cert, key
}

// NewCertificate writes a certificate for 127.0.0.1 that signs itself, and its key, to a new folder
// that all servers here can read. Remove the folder, also after an error.
func NewCertificate() (dir, cert, key string, err error) {
	if dir, err = privateDir("leafcert"); err != nil {
		return dir, "", "", err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return dir, "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leaf test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(private)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return dir, cert, key, cmp.Or(err1, err2, writePEM(cert, "CERTIFICATE", der), writePEM(key, "PRIVATE KEY", keyDER))
}

// writePEM writes a file that is the servers' own: a server may refuse another user's key.
func writePEM(path, kind string, content []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		return err
	}
	return give(path)
}
