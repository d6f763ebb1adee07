package deploy

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes again, from the chart")

const chartDir = "helm/leaf"

// These are the values of the plain manifests.
const (
	database = "store: {secret: leaf-store}"
	embedded = "replicas: 1\npersistence: {enabled: true}"
	cluster  = "cluster: {secret: leaf-peers}\npersistence: {enabled: true}"
	found    = "cluster: {secret: leaf-peers, found: true}\npersistence: {enabled: true}"
)

// full turns on every part of the chart.
const full = database + `
workers: {secret: leaf-workers}
tokens: {secret: leaf-tokens}
tls: {secret: leaf-tls}
persistence: {enabled: true, storageClass: fast}
config: {segment: {outage_budget: 20m}}
grpc: {enabled: true}
serviceMonitor: {enabled: true, tokenSecret: leaf-metrics, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {team: shop}}}]}
imagePullSecrets: [{name: registry}]
env: [{name: LEAF_LOG_LEVEL, value: debug}]
podLabels: {team: ids}
podAnnotations: {note: "1"}
nodeSelector: {disk: ssd}
tolerations: [{key: ids, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
priorityClassName: high
`

// render returns the chart's files, by name.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "leaf", Namespace: "ids", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	for name, text := range files {
		if strings.TrimSpace(text) == "" {
			delete(files, name)
		}
	}
	return files, err
}

// noted returns the match of a pattern's group in the notes for the user.
func noted(t *testing.T, values, pattern string) string {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	text := files["leaf/templates/NOTES.txt"]
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the notes have no %s:\n%s", pattern, text)
	}
	return m[1]
}

// mustRender returns the objects that the chart makes.
func mustRender(t *testing.T, values string) *objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var o objects
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			for text := range strings.SplitSeq(files[name], "\n---\n") {
				o.decode(t, name, text)
			}
		}
	}
	return &o
}

func TestChartLint(t *testing.T) {
	for _, values := range []string{database, embedded, cluster, found, full} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.All(chartDir, given, "ids", true).Messages {
			t.Errorf("%s\n%s", m, values)
		}
	}
}

// The objects of each variant fit the types of Kubernetes and each other.
func TestChart(t *testing.T) {
	tests := []struct {
		values string
		kinds  string
	}{
		{database, "ConfigMap Job PodDisruptionBudget Service Deployment"},
		{embedded, "ConfigMap Service StatefulSet"},
		{cluster + "\nnetworkPolicy: {enabled: true}\n", "ConfigMap NetworkPolicy Service PodDisruptionBudget Service StatefulSet"},
		{full, "ConfigMap Job NetworkPolicy PodDisruptionBudget Service ServiceMonitor StatefulSet"},
		{database + "\nreplicas: 1\ninit: {enabled: false}\nresp: {enabled: false}\n", "ConfigMap Service Deployment"},
		{database + "\nconfig: {public_read: true}\nserviceMonitor: {enabled: true}\nnetworkPolicy: {enabled: true}\n",
			"ConfigMap Job NetworkPolicy PodDisruptionBudget Service ServiceMonitor Deployment"},
	}
	for _, tt := range tests {
		o := mustRender(t, tt.values)
		if got := strings.Join(o.kinds, " "); got != tt.kinds {
			t.Errorf("%s\nmakes %s, want %s", tt.values, got, tt.kinds)
		}
		o.check(t)
	}
}

// The chart refuses values under which servers would give out the same IDs, or do nothing.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                                    "set persistence.enabled",
		"replicas: 1":                                           "set persistence.enabled",
		"persistence: {enabled: true}":                          "give out the same IDs",
		database + "\n" + cluster:                               "set store.secret or cluster.secret",
		"cluster: {secret: leaf-peers}":                         "set persistence.enabled",
		"cluster: {found: true}":                                "cluster.found needs cluster.secret",
		cluster + "\nconfig: {cluster: ['a:1']}":                "config.cluster would be overruled",
		database + "\nreplica: 2":                               "additional properties 'replica' not allowed",
		"store: {url: mysql://}":                                "additional properties 'url' not allowed",
		database + "\ndrainDelay: 5":                            "/drainDelay",
		database + "\nconfig: {listen: ':1'}":                   "config.listen would be overruled",
		database + "\nserviceMonitor: {enabled: true}":          "refuse /metrics to Prometheus",
		database + "\nenv: [{name: LEAF_LISTEN, value: ':1'}]":  "env must not set LEAF_LISTEN",
		database + "\npodLabels: {app.kubernetes.io/name: ids}": "podLabels must not set app.kubernetes.io/name",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis answered %v, want %s", values, err, want)
		}
	}
}

// hookAnnotations mean something to helm alone.
var hookAnnotations = regexp.MustCompile(`(?m)^  annotations: \{helm\.sh/.*\n`)

// The plain manifests equal the chart's.
func TestManifests(t *testing.T) {
	for name, values := range map[string]string{"database": database, "embedded": embedded, "cluster": cluster, "cluster-found": found} {
		files, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		fmt.Fprintf(&all, "# Made from the chart in deploy/helm, with:\n")
		for line := range strings.SplitSeq(values, "\n") {
			fmt.Fprintf(&all, "#   %s\n", line)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if text := strings.TrimSpace(files[name]); strings.HasSuffix(name, ".yaml") {
				fmt.Fprintf(&all, "---\n%s\n", hookAnnotations.ReplaceAllString(text, ""))
			}
		}
		path := filepath.Join("kubernetes", name+".yaml")
		if *update {
			if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil { //nolint:gosec // others read it
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, all.Bytes()) {
			t.Errorf("%s is not what the chart makes (%v): cd deploy && go test -run Manifests . -update", path, err)
		}
	}
}

// The values that the chart documents are those of its schema.
func TestChartValues(t *testing.T) {
	var values, schema map[string]any
	for name, into := range map[string]*map[string]any{"values.yaml": &values, "values.schema.json": &schema} {
		text, err := os.ReadFile(filepath.Join(chartDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	for name := range schema["properties"].(map[string]any) {
		if _, ok := values[name]; !ok && name != "global" {
			t.Errorf("values.yaml lacks %s", name)
		}
	}
}
