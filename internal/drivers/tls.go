package drivers

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"

	"github.com/leaf-id/leaf"
)

// Parameters that name PEM files: who signs the server's certificate, and the client's
// own certificate with its key.
const (
	paramCA   = "ca"
	paramCert = "cert"
	paramKey  = "key"
)

// cutTLS takes these parameters out of a URL's query and returns the encryption that
// they describe. Without encryption there must be none, and the result is nil; how says
// how to turn it on.
func cutTLS(params url.Values, on bool, how string) (*tls.Config, error) {
	ca, cert, key := params.Get(paramCA), params.Get(paramCert), params.Get(paramKey)
	for _, name := range []string{paramCA, paramCert, paramKey} {
		params.Del(name)
	}
	switch {
	case !on && ca+cert+key != "":
		return nil, fmt.Errorf("%w: ca, cert and key are for TLS: %s", leaf.ErrInvalid, how)
	case !on:
		return nil, nil
	case (cert == "") != (key == ""):
		return nil, fmt.Errorf("%w: cert and key belong together", leaf.ErrInvalid)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%w: ca: %w", leaf.ErrInvalid, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: ca: there is no PEM certificate in %s", leaf.ErrInvalid, ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: cert and key: %w", leaf.ErrInvalid, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
