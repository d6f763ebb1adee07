package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A database that refuses the server, and secrets: what only the log of the server may
// name.
type refusing struct {
	url     string
	secrets []string // its address, the user, the database
	stop    func() error
}

func refusingDatabases(t *testing.T) map[string]refusing {
	m, p := testserver.MariaDB(t, nil), testserver.Postgres(t, nil)
	mdb, pdb := m.NewDatabase(t), p.NewDatabase(t)
	m.Exec(t, mdb, "GRANT USAGE ON *.* TO dealer@'127.0.0.1' IDENTIFIED BY 'hunter2'")
	p.Exec(t, pdb, "CREATE USER dealer PASSWORD 'hunter2'")
	murl, purl := strings.Replace(m.URL(mdb), "root", "dealer:hunter2", 1), p.URLOf("dealer", "hunter2", pdb)
	return map[string]refusing{
		"mysql":    {murl, []string{addressIn(murl), "dealer", mdb}, m.Stop},
		"postgres": {purl, []string{addressIn(purl), "dealer", pdb}, p.Stop},
	}
}

func addressIn(url string) string {
	_, rest, _ := strings.Cut(url, "@")
	address, _, _ := strings.Cut(rest, "/")
	return address
}

// Through every front end, and with every problem of the database, callers learn neither its name
// nor its user nor its host.
func TestCallersAreNotToldWhatTheDatabaseIs(t *testing.T) {
	for name, db := range refusingDatabases(t) {
		t.Run(name, func(t *testing.T) {
			p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_SEGMENT_WAIT=50ms", "LEAF_SNOWFLAKE_WAIT=50ms"),
				"--listen", "0.0.0.0:0", "--store", db.url, "--workers", db.url, "--data", filepath.Join(t.TempDir(), "data"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.kill)
			p.url = strings.Replace(p.url, "0.0.0.0", "127.0.0.1", 1)
			for _, state := range []string{"denied", "dead"} {
				for what, said := range askEverything(t, p.url) {
					for _, secret := range db.secrets {
						if strings.Contains(said, secret) {
							t.Errorf("%s, %s names %s: %s", state, what, secret, said)
						}
					}
				}
				if log := p.text(); !strings.Contains(log, db.secrets[1]) {
					t.Errorf("%s: the log does not say why:\n%s", state, log)
				}
				if state == "denied" {
					if err := db.stop(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if log := p.text(); !strings.Contains(log, db.secrets[0]) {
				t.Errorf("the log does not name %s:\n%s", db.secrets[0], log)
			}
		})
	}
}

// askEverything returns the answers of each route, with headers, and of the RPCs.
func askEverything(t *testing.T, url string) map[string]string {
	t.Helper()
	said := make(map[string]string)
	for _, path := range []string{
		"/api/segment/get/order", "/api/segment/get/order?n=5", "/api/segment/get/other?n=x", "/api/snowflake/get/order",
		"/api/snowflake/get/order?n=5", "/api/uid/get/x", "/api/ticket/get/order", "/readyz", "/readyz?verbose",
		"/readyz?scheme=segment", "/readyz?scheme=snowflake", "/cache", "/db", "/healthz",
	} {
		for _, accept := range []string{"*/*", "text/html", "application/json"} {
			said["GET "+path+" "+accept] = fetch(t, http.MethodGet, url+path, accept, "")
		}
	}
	for method, body := range map[string]string{
		"LeafService/Next": `{"key":"order"}`, "LeafService/Take": `{"scheme":"snowflake","key":"order","count":5}`,
		"AdminService/ListTags": "{}", "AdminService/ListWorkers": "{}", "AdminService/Status": "{}",
		"AdminService/DeleteTag": `{"name":"order"}`,
	} {
		said["Connect "+method] = fetch(t, http.MethodPost, url+"/leaf.v1."+method, "application/json", body)
	}
	client := &http.Client{Transport: h2cTransport()}
	ids := leafv1connect.NewLeafServiceClient(client, url, connect.WithGRPC())
	for _, scheme := range []string{"segment", "snowflake"} {
		_, err := ids.Next(t.Context(), &leafv1.NextRequest{Scheme: scheme, Key: "order"})
		said["gRPC Next "+scheme] = fmt.Sprint(err)
		_, err = ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: scheme, Key: "order", Count: 5})
		said["gRPC Take "+scheme] = fmt.Sprint(err)
	}
	status, err := leafv1connect.NewAdminServiceClient(client, url, connect.WithGRPC()).Status(t.Context(), new(leafv1.StatusRequest))
	said["gRPC Status"] = fmt.Sprint(status, err)
	return said
}

// h2cTransport speaks HTTP/2 without TLS, as gRPC does.
func h2cTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols}
}

func fetch(t *testing.T, method, url, accept, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all bytes.Buffer
	_ = res.Header.Write(&all) // a buffer takes all
	if _, err := io.Copy(&all, res.Body); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
