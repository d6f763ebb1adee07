package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/server/access"
)

// credentials are how a command knows a server, and shows it who asks. A token is never an
// argument, which other users of the machine could read.
type credentials struct {
	tokenFile         string
	caFile            string
	certFile, keyFile string
}

func (c *credentials) addFlags(cmd *cobra.Command) {
	TextVar(cmd, &c.tokenFile, "token-file", "`FILE` that holds the token for the server (default: the token in $LEAF_TOKEN)")
	TextVar(cmd, &c.caFile, "ca-file", "`FILE` of certificates that vouch for the server, in PEM (default $LEAF_CA_FILE, or those of the system)")
	TextVar(cmd, &c.certFile, "cert-file", "`FILE` of this client's certificate, in PEM (default $LEAF_CERT_FILE)")
	TextVar(cmd, &c.keyFile, "key-file", "`FILE` of its key (default $LEAF_KEY_FILE)")
}

// http returns a client that shows the credentials to the server that it calls, and to no
// other that this one might name.
func (c *credentials) http() (*http.Client, error) {
	token, err := c.Token()
	if err != nil {
		return nil, err
	}
	conf, err := c.TLS()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	return &http.Client{
		Transport:     bearer{token, transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// Token returns the token, "" without one.
func (c *credentials) Token() (string, error) {
	token, from := os.Getenv("LEAF_TOKEN"), "LEAF_TOKEN"
	if c.tokenFile != "" {
		data, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		token, from = string(data), "--token-file "+c.tokenFile
	}
	token = strings.TrimSpace(token)
	if token == "" && c.tokenFile == "" {
		return "", nil
	}
	if err := access.CheckToken(token); err != nil {
		return "", Hinted(fmt.Errorf("%s is not a token: %w", from, err), "'leaf token new' makes a token")
	}
	return token, nil
}

// TLS returns the authorities that vouch for the server, and the certificate of this client.
func (c *credentials) TLS() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := cmp.Or(c.caFile, os.Getenv("LEAF_CA_FILE")); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file %s: the file holds no certificate in PEM", file)
		}
	}
	cert, key := cmp.Or(c.certFile, os.Getenv("LEAF_CERT_FILE")), cmp.Or(c.keyFile, os.Getenv("LEAF_KEY_FILE"))
	if cert == "" && key == "" {
		return conf, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("--cert-file and --key-file go together: one is missing")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--cert-file, --key-file: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

type bearer struct {
	token string // "": no token
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}
