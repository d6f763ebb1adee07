package testserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// prometheusConfig scrapes the targets in a file each second, which a busy machine can do, and
// evaluates rules four times a second.
const prometheusConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 250ms}
rule_files: [rules.yaml]
scrape_configs:
- job_name: leaf
  tls_config: {insecure_skip_verify: true}
  file_sd_configs: [{files: [targets.json], refresh_interval: 250ms}]
`

// A PrometheusServer is a Prometheus of its own.
type PrometheusServer struct {
	private
	rules string
}

// A PrometheusTarget is a target of a Prometheus.
type PrometheusTarget struct {
	Addr   string // HOST:PORT, which becomes the label instance
	Scheme string // http or https
}

// Prometheus starts a Prometheus with the text of a file of rules. It ends with the test, and
// scrapes nothing before [PrometheusServer.Scrape].
func Prometheus(t TB, rules string) *PrometheusServer {
	t.Helper()
	s := &PrometheusServer{rules: rules}
	s, err := privately(s, &s.private, "prometheus")
	return until(t, s, err)
}

// Start starts the server, and returns when it is ready.
func (s *PrometheusServer) Start() error {
	for name, text := range map[string]string{"rules.yaml": s.rules, "prometheus.yml": prometheusConfig, "targets.json": "[]"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("start prometheus: %w", err)
		}
	}
	return s.startOn(s.run)
}

// Scrape has the server scrape these targets from now on, as the job leaf.
func (s *PrometheusServer) Scrape(t TB, targets ...PrometheusTarget) {
	t.Helper()
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for _, target := range targets {
		groups = append(groups, group{[]string{target.Addr}, map[string]string{"__scheme__": target.Scheme}})
	}
	text, err := json.Marshal(groups)
	if err == nil {
		next := filepath.Join(s.Dir, "targets.next")
		if err = os.WriteFile(next, text, 0o600); err == nil {
			err = os.Rename(next, filepath.Join(s.Dir, "targets.json"))
		}
	}
	if err != nil {
		t.Fatalf("have prometheus scrape: %v", err)
	}
}

// A PrometheusSample is a series, and its value now as Prometheus writes it.
type PrometheusSample struct {
	Labels map[string]string
	Value  string
}

// Query evaluates an expression now.
func (s *PrometheusServer) Query(expr string) ([]PrometheusSample, error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(s.url() + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("query %s: %s: %w", expr, resp.Status, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("query %s: %s", expr, answer.Error)
	}
	var samples []PrometheusSample
	for _, r := range answer.Data.Result {
		samples = append(samples, PrometheusSample{r.Metric, fmt.Sprint(r.Value[1])})
	}
	return samples, nil
}

func (s *PrometheusServer) url() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

func (s *PrometheusServer) run() (err error) {
	s.proc, err = start(exec.Command("prometheus", "--config.file="+filepath.Join(s.Dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(s.Dir, "data"), fmt.Sprintf("--web.listen-address=127.0.0.1:%d", s.Port), "--log.level=warn"))
	if err != nil {
		return fmt.Errorf("%w: install prometheus (make test does it on Debian as root)", err)
	}
	return s.proc.await("start prometheus", func() error {
		resp, err := http.Get(s.url() + "/-/ready")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it is not ready: %s", resp.Status)
		}
		return nil
	})
}
