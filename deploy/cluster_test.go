package deploy

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A fleet is the containers of a cluster, each a process of this machine. They reach each other by
// their real names and ports: a hosts file of their own leads each name to a loopback address.
type fleet struct {
	t     *testing.T
	hosts string // the file
	nodes []*node
}

// A node is a container of a server over all its lives.
type node struct {
	container *core.Container
	root      string // has its volumes
	address   string
	mu        sync.Mutex
	server    *exec.Cmd
	stopped   bool
	ended     chan struct{} // closes after the last life
	log       strings.Builder
}

// newFleet has one node for each container. Names are how the peers call them.
func newFleet(t *testing.T, names []string, containers []*core.Container) *fleet {
	f := &fleet{t: t, hosts: filepath.Join(t.TempDir(), "hosts")}
	var hosts strings.Builder
	for i, c := range containers {
		n := &node{container: c, root: t.TempDir(), address: fmt.Sprint("127.0.1.", i+1)}
		fmt.Fprintln(&hosts, n.address, names[i])
		if err := os.Mkdir(filepath.Join(n.root, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		f.nodes = append(f.nodes, n)
	}
	if err := os.WriteFile(f.hosts, []byte(hosts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			n.kill()
		}
	})
	return f
}

// command is a command of leaf in a container, which may be another one than that of the server.
func (f *fleet) command(n *node, c *core.Container, args ...string) *exec.Cmd {
	other := *c
	if len(args) > 0 {
		other.Args = args
	}
	cmd := container(f.t, n.root, &other, n.address+":"+port)
	for i, e := range cmd.Env {
		cmd.Env[i] = strings.Replace(e, "LEAF_CLUSTER_LISTEN=:", "LEAF_CLUSTER_LISTEN="+n.address+":", 1) // others have this port too
	}
	inside := append([]string{"--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, f.hosts, cmd.Path}, cmd.Args[1:]...)
	if os.Geteuid() != 0 {
		inside = append([]string{"--map-root-user"}, inside...)
	}
	wrapped := exec.Command("unshare", inside...)
	wrapped.Env, wrapped.Stderr = append(cmd.Env, "PATH="+os.Getenv("PATH")), cmd.Stderr
	return wrapped
}

// run runs a command, again until it succeeds, as a person would.
func (f *fleet) run(n *node, c *core.Container, args ...string) string {
	f.t.Helper()
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		var stderr strings.Builder
		cmd := f.command(n, c, args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil {
			return string(out)
		}
		if time.Since(begin) > time.Minute {
			f.t.Fatalf("leaf %v: %v\n%s", args, err, stderr.String())
		}
	}
}

// start starts a node, again whenever it ends, as restartPolicy has it.
func (f *fleet) start(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped, n.ended = false, make(chan struct{})
	go func() {
		defer close(n.ended)
		for {
			n.mu.Lock()
			if n.stopped {
				n.mu.Unlock()
				return
			}
			n.server = f.command(n, n.container)
			n.server.Stderr = &n.log
			err := n.server.Start()
			n.mu.Unlock()
			if err == nil {
				_ = n.server.Wait()
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

func (n *node) kill() {
	n.mu.Lock()
	if n.stopped = true; n.server != nil && n.server.Process != nil {
		_ = n.server.Process.Signal(syscall.SIGKILL)
	}
	n.mu.Unlock()
	if n.ended != nil {
		<-n.ended
	}
}

// take returns IDs of a node, once it has some.
func (f *fleet) take(n *node) (ids []string) {
	f.t.Helper()
	var last error
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		var answer struct {
			IDs []string `json:"ids"`
		}
		resp, err := http.Get("http://" + n.address + ":" + port + "/v1/ids/segment/leaf-segment-test?n=3000") // more than a step
		if last = err; err != nil {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if last = errors.Join(err, json.Unmarshal(body, &answer)); last == nil && len(answer.IDs) == 3000 {
			return answer.IDs
		}
	}
	f.t.Fatalf("%s has no IDs: %v\n%s", n.address, last, n.log.String())
	return nil
}

// survives has the cluster grow and lose servers. Only the founded one has IDs before the others are
// added. No ID comes twice, and a server with an emptied volume founds nothing.
func (f *fleet) survives(add []string) {
	f.t.Helper()
	seen := make(map[string]bool)
	draw := func(nodes ...*node) {
		f.t.Helper()
		for _, n := range nodes {
			for _, id := range f.take(n) {
				if seen[id] {
					f.t.Fatalf("ID %s came twice", id)
				}
				seen[id] = true
			}
		}
	}
	for _, n := range f.nodes {
		f.start(n)
	}
	first := f.nodes[0]
	draw(first)
	f.run(first, first.container, add...)
	draw(f.nodes...)
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		status := f.run(first, first.container, "cluster", "status")
		if strings.Count(status, " answers") == 3 && !strings.Contains(status, "learner") {
			break
		}
		if time.Since(begin) > time.Minute {
			f.t.Fatalf("not all vote:\n%s", status)
		}
	}
	first.kill()
	draw(f.nodes[1:]...)
	f.start(first)
	draw(f.nodes...)
	emptied := f.nodes[2]
	emptied.kill()
	if err := os.RemoveAll(filepath.Join(emptied.root, "data/cluster")); err != nil {
		f.t.Fatal(err)
	}
	again := f.command(emptied, emptied.container)
	again.Stderr = nil
	out, err := again.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "this member has lost its log") {
		f.t.Errorf("a server with an emptied volume: %v\n%s", err, out)
	}
	draw(f.nodes[:2]...)
}

// The pods of the chart become a cluster by the Job and the command of the notes.
func TestClusterOfPods(t *testing.T) {
	job, set := mustRender(t, found), mustRender(t, cluster+"\nresp: {enabled: false}").set
	var names []string
	var pods []*core.Container
	for i := range *set.Spec.Replicas {
		pod := set.Spec.Template.Spec.Containers[0].DeepCopy()
		name := fmt.Sprint(set.Name, "-", i)
		for j := range pod.Env {
			pod.Env[j].Value = strings.ReplaceAll(pod.Env[j].Value, "$(POD_NAME)", name)
		}
		names, pods = append(names, name+"."+set.Spec.ServiceName), append(pods, pod)
	}
	f := newFleet(t, names, pods)
	certs := filepath.Join(t.TempDir(), "certs")
	page := strings.Fields(documented(t, `\$ leaf (cluster certs .*)\n`))
	wildcard := strings.Trim(page[2], "'")
	run(t, ".", filepath.Join(build(t, "v1.0.0"), "bin/leaf"), "cluster", "certs", wildcard, "--dir", certs)
	checkNames(t, filepath.Join(certs, wildcard+".pem"), names)
	for _, n := range f.nodes {
		for secret, file := range map[string]string{"ca.crt": "ca.pem", "tls.crt": wildcard + ".pem", "tls.key": wildcard + "-key.pem"} {
			copyFile(t, filepath.Join(certs, file), filepath.Join(n.root, "secrets/peers", secret))
		}
		copyFile(t, os.DevNull, filepath.Join(n.root, "etc/leaf/leaf.yaml"))
	}
	f.run(f.nodes[0], &job.job.Spec.Template.Spec.Containers[0])
	f.survives(strings.Fields(noted(t, cluster, `-- /leaf (cluster add .*)\n`)))
}

// The Job that creates a cluster has the volume of the first server, and nothing else is with it.
func TestClusterFound(t *testing.T) {
	o, servers := mustRender(t, found), mustRender(t, cluster)
	if got := strings.Join(o.kinds, " "); got != "PersistentVolumeClaim Job" {
		t.Errorf("it makes %s", got)
	}
	template := servers.set.Spec.VolumeClaimTemplates[0]
	pod := o.job.Spec.Template.Spec
	volume := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.PersistentVolumeClaim != nil })
	if want := template.Name + "-" + servers.set.Name + "-0"; o.claim.Name != want || pod.Volumes[volume].PersistentVolumeClaim.ClaimName != want {
		t.Errorf("the claim %s, mounted is %+v, the first server has %s", o.claim.Name, pod.Volumes[volume], want)
	}
	if fmt.Sprint(o.claim.Spec) != fmt.Sprint(template.Spec) {
		t.Errorf("the claim is %+v, the servers have %+v", o.claim.Spec, template.Spec)
	}
	checkVolumes(t, &pod, nil)
	for _, c := range servers.set.Spec.Template.Spec.Containers {
		if slices.Contains(c.Args, "init") || len(servers.set.Spec.Template.Spec.InitContainers) > 0 {
			t.Error("a server creates a cluster by itself")
		}
	}
}

// The services of the compose file become a cluster by the commands in it.
func TestClusterOfCompose(t *testing.T) {
	text, err := os.ReadFile("docker/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Volumes     []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	services := make(map[string]*core.Container)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		s := file.Services[name]
		c := &core.Container{Args: s.Command}
		if len(s.Command) == 0 {
			c.Args = []string{"serve"} // the image's
		}
		for _, e := range imageEnv(t) {
			key, value, _ := strings.Cut(e, "=")
			c.Env = append(c.Env, core.EnvVar{Name: key, Value: value})
		}
		for key, value := range s.Environment {
			c.Env = append(c.Env, core.EnvVar{Name: key, Value: value})
		}
		for _, v := range s.Volumes {
			c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{MountPath: strings.Split(v, ":")[1]})
		}
		if services[name] = c; strings.HasPrefix(name, "leaf-") {
			names = append(names, name)
		}
	}
	f := newFleet(t, names, []*core.Container{services[names[0]], services[names[1]], services[names[2]]})
	made := &node{root: t.TempDir(), address: f.nodes[0].address}
	f.run(made, services["certs"])
	for _, n := range f.nodes { // the volume certs
		if err := os.CopyFS(filepath.Join(n.root, "certs"), os.DirFS(filepath.Join(made.root, "data"))); err != nil {
			t.Fatal(err)
		}
	}
	advised := func(pattern string) []string {
		m := regexp.MustCompile(`(?m)^#\t.* ` + pattern + `$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("no comment has %s", pattern)
		}
		return strings.Fields(m[1])
	}
	advised(`run --rm (certs)`)
	f.run(f.nodes[0], f.nodes[0].container, advised(`run --rm `+names[0]+` (cluster init .*)`)...)
	f.survives(advised(`exec ` + names[0] + ` /leaf (cluster add .*)`))
}

// documented returns the match of a pattern's group on the page about containers.
func documented(t *testing.T, pattern string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(page)
	if m == nil {
		t.Fatalf("docs/containers.md has no %s", pattern)
	}
	return string(m[1])
}

// checkNames fails where a certificate is not for a name.
func checkNames(t *testing.T, file string, names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}
