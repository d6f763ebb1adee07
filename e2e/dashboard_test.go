package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// panelQueries returns the expressions of all panels of the dashboard by panel, with values in
// the place of Grafana's variables.
func panelQueries(t *testing.T) map[string][]string {
	t.Helper()
	type panel struct {
		Title   string
		Type    string
		Targets []struct{ Expr string }
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(readText(t, "../deploy/grafana/leaf.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$instance", ".*", "$__rate_interval", "15s")
	queries := make(map[string][]string)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %s: an unknown variable in %s", p.Title, expr)
			}
			queries[p.Title] = append(queries[p.Title], expr)
		}
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
	}
	if len(queries) < 20 {
		t.Fatalf("%d panels", len(queries))
	}
	return queries
}

// Each query of the dashboard has an answer where a server is used over all front ends. The server is
// its own store, as the only member of a cluster.
func TestDashboard(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	cert, key := t.TempDir()+"/cert.pem", t.TempDir()+"/key.pem"
	writeCertificate(t, cert, key, time.Hour)
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	data, peer := t.TempDir()+"/data", fmt.Sprint("127.0.0.1:", port)
	if out, err := exec.CommandContext(t.Context(), leafBinary, "cluster", "init", peer, "--data", data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := serveBy(t, append([]string{"env", "LEAF_TLS_CERT=" + cert, "LEAF_TLS_KEY=" + key, "LEAF_RESP=127.0.0.1:0", "LEAF_UID_ENABLE=true", leafBinary},
		serveArgs([]string{"--data", data, "--cluster", peer})...)...)
	insecure := &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure}}
	defer client.CloseIdleConnections()
	conn, err := tls.Dial("tcp", portAddress(t, s, "resp"), insecure)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	use := func() error {
		for _, path := range []string{"/api/segment/get/" + sampleTag, "/api/segment/get/" + sampleTag + "?n=1000", "/api/snowflake/get/k", "/api/uid/get/k", "/v1/ids/segment/" + sampleTag} {
			if _, err := getWith(client, s.url+path); err != nil {
				return err
			}
		}
		resp, err := client.Post(s.url+"/leaf.v1.LeafService/Next", "application/json", strings.NewReader(`{"key":"`+sampleTag+`"}`))
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		fmt.Fprintf(conn, "INCR %s\r\n", sampleTag)
		_, err = lines.ReadString('\n')
		return err
	}
	until(t, 30*time.Second, "in use", use)
	w := watch(t, s)
	for panel, queries := range panelQueries(t) {
		for _, expr := range queries {
			until(t, time.Minute, "an answer for panel "+panel, func() error {
				if err := use(); err != nil {
					return err
				}
				return w.hasNumber(expr)
			})
		}
	}
}

// portAddress returns where the server has a port besides that of HTTP.
func portAddress(t *testing.T, s *server, name string) string {
	t.Helper()
	m := regexp.MustCompile("msg=serving .* " + name + "=(\\S+)").FindStringSubmatch(s.output())
	if m == nil {
		t.Fatalf("the server has no port %s:\n%s", name, s.output())
	}
	return m[1]
}

// hasNumber returns an error unless expr results in a number.
func (w *watcher) hasNumber(expr string) error {
	samples, err := w.Query(expr)
	if err != nil {
		return err
	}
	for _, s := range samples {
		if s.Value != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("%s: %v", expr, samples)
}
