package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/config"
)

// certificates are the server's certificate and the authorities of its clients. Open connections
// survive a change.
type certificates struct {
	conf atomic.Pointer[tls.Config] // never changed itself
}

// prepare reads the files. The returned function applies them.
func (c *certificates) prepare(files config.TLS) (commit func(), err error) {
	conf, err := load(files)
	return func() { c.conf.Store(conf) }, err
}

// current returns the certificates for the next connection.
func (c *certificates) current() *tls.Config { return c.conf.Load() }

// Config returns the configuration of all ports.
func (c *certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

func load(files config.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: nextProtos, Certificates: []tls.Certificate{pair},
		DynamicRecordSizingDisabled: true, // a small record costs a write
	}
	if files.ClientCA == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(files.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read tls.client_ca: %w", err)
	}
	conf.ClientCAs = x509.NewCertPool()
	if !conf.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("read tls.client_ca: the file holds no certificate in PEM")
	}
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	return conf, nil
}
