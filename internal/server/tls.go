package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/leaf-id/leaf/internal/config"
)

// reloadInterval is how often the files are looked at, at most, while clients connect.
const reloadInterval = time.Second

// certificates are the server's certificate and the authorities of its clients. They are
// read again when their files have changed; connections that are open stay.
type certificates struct {
	files config.TLS
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   [3]fileState
	conf   *tls.Config // never changes itself
}

// A fileState tells a file that has changed.
type fileState struct {
	modified time.Time
	size     int64
}

func newCertificates(files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log, seen: states(files), looked: time.Now()}
	var err error
	if c.conf, err = load(files); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return c, nil
}

// Config returns the configuration of all ports.
func (c *certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

// current returns what is valid for the next connection.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < reloadInterval {
		return c.conf
	}
	c.looked = time.Now()
	now := states(c.files)
	if now == c.seen {
		return c.conf
	}
	c.seen = now
	conf, err := load(c.files)
	if err != nil { // one of two files may not be there yet
		c.log.Error("the TLS files have changed and cannot be used; those read before stay", "err", err)
		return c.conf
	}
	c.log.Info("the TLS files were read again")
	c.conf = conf
	return c.conf
}

func states(files config.TLS) (s [3]fileState) {
	for i, name := range []string{files.Cert, files.Key, files.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			s[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return s
}

func load(files config.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
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
