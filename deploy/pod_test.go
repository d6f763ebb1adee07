package deploy

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// The Job of the chart makes a store that the pods serve from, with the settings of the chart, the
// probes succeed, and the notes for the user make a tag.
func TestPodServes(t *testing.T) {
	t.Run("database", func(t *testing.T) {
		podServes(t, database+"\nworkers: {secret: leaf-workers}\nconfig: {ready_for: 20s, snowflake: {max_ahead: 1s}}\n", "snowflake/any")
	})
	t.Run("embedded", func(t *testing.T) { podServes(t, embedded, "segment/leaf-segment-test") })
}

func podServes(t *testing.T, values, first string) {
	o := mustRender(t, values)
	root := t.TempDir()
	for name, text := range map[string]string{
		"secrets/store/url":   "sqlite:" + root + "/store.db\n",
		"secrets/workers/url": "sqlite:" + root + "/store.db\n",
		"etc/leaf/leaf.yaml":  o.config.Data["leaf.yaml"],
		"data/empty":          "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if o.job != nil {
		if err := container(t, root, &o.job.Spec.Template.Spec.Containers[0], "").Run(); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	pods, _ := o.pods()
	pod := &pods.Spec.Containers[0]
	_, port, _ := net.SplitHostPort(address)
	server := container(t, root, pod, ":"+port) // as other machines reach it
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	for _, probe := range []*core.Probe{pod.ReadinessProbe, pod.LivenessProbe} {
		eventuallyOK(t, "http://"+address+probe.HTTPGet.Path)
	}
	get(t, "http://"+address+"/v1/ids/"+first)
	advised := *pod
	advised.Args = strings.Fields(noted(t, values, `-- /leaf (.*)\n`))
	if err := container(t, root, &advised, ":"+port).Run(); err != nil {
		t.Error(err)
	}
	get(t, "http://"+address+noted(t, values, `localhost:8080(.*)\n`))
	signal(t, server, syscall.SIGTERM)
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	if limit := time.Duration(*pods.Spec.TerminationGracePeriodSeconds) * time.Second; limit < 15*time.Second {
		t.Errorf("the pod is killed after %v, before drain_delay and shutdown_timeout are over", limit)
	}
}

// container is the command that a container of the server's image runs, with root for /, and its
// port for HTTP on address.
func container(t *testing.T, root string, c *core.Container, address string) *exec.Cmd {
	t.Helper()
	inRoot := func(text string) string {
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(text, m.MountPath) {
				return root + text
			}
		}
		return strings.NewReplacer(":8080", address, ":6380", "off", "sqlite:/data", "sqlite:"+root+"/data").Replace(text)
	}
	cmd := exec.Command(filepath.Join(build(t, "v1.0.0"), "bin/leaf"))
	for _, arg := range c.Args {
		cmd.Args = append(cmd.Args, inRoot(arg))
	}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+inRoot(e.Value))
	}
	cmd.Stderr = t.Output()
	return cmd
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventuallyOK waits until a server answers 200.
func eventuallyOK(t *testing.T, url string) {
	t.Helper()
	for range 400 {
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
		}
		if err == nil && res.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not answer 200", url)
}
