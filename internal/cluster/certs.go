package cluster

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of certificates in a folder. A machine needs the authority's certificate and its own two
// files; the authority's key signs further ones and belongs on no server.
const (
	CAFile    = "ca.pem"
	caKeyFile = "ca-key.pem"
)

// How long certificates are valid.
const (
	caYears   = 20
	certYears = 5
)

// Certify makes a certificate for each host in a folder, HOST.pem and HOST-key.pem, signed by the
// authority in that folder, which it creates if both its files are missing. It overwrites nothing.
func Certify(folder string, hosts []string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, host := range hosts {
		if _, err := os.Lstat(filepath.Join(folder, host+".pem")); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s.pem is in %s already", host, folder)
		}
	}
	authority, key, err := loadAuthority(folder)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: host},
			NotAfter:    time.Now().AddDate(certYears, 0, 0),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = []net.IP{ip}
		} else {
			template.DNSNames = []string{host}
		}
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		if err := writeCertificate(folder, host, template, authority, own, key); err != nil {
			return err
		}
	}
	return nil
}

// loadAuthority returns the authority of a folder, or makes it.
func loadAuthority(folder string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err1 := os.ReadFile(filepath.Join(folder, CAFile))
	secret, err2 := os.ReadFile(filepath.Join(folder, caKeyFile))
	switch {
	case errors.Is(err1, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist):
		return newAuthority(folder)
	case err1 != nil || err2 != nil:
		return nil, nil, errors.Join(err1, err2)
	}
	pair, err := tls.X509KeyPair(cert, secret)
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, nil, fmt.Errorf("the authority in %s is damaged: %w", folder, cmp.Or(err, errors.New("its key is of another kind")))
	}
	return pair.Leaf, key, nil
}

func newAuthority(folder string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Leaf cluster"},
		NotAfter:              time.Now().AddDate(caYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	if err := writeCertificate(folder, "ca", template, template, key, key); err != nil {
		return nil, nil, err
	}
	return loadAuthority(folder)
}

// writeCertificate signs a certificate and writes it with its key.
func writeCertificate(folder, name string, template, parent *x509.Certificate, own, signer *ecdsa.PrivateKey) (err error) {
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, &own.PublicKey, signer)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(folder, name+"-key.pem"), "EC PRIVATE KEY", secret, 0o600),
		writePEM(filepath.Join(folder, name+".pem"), "CERTIFICATE", cert, 0o644))
}

func writePEM(path, kind string, content []byte, mode fs.FileMode) error {
	return writeSynced(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), mode)
}
