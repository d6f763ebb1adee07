package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A spec describes the world that a test needs.
type spec struct {
	servers int      // with one store; default 1
	tags    []string // NAME:STEP, and possibly :OPTION=VALUE
	pools   []string // NAME:WORKERBITS:SEQUENCEBITS of milliseconds since 2026
	tls     bool     // the servers speak https
	tokens  bool     // the servers want a token
	env     []string // more of the servers' environment
}

func parseSpec(q url.Values) (spec, error) {
	s := spec{servers: 1, tags: q["tag"], pools: q["pool"], tls: q.Has("tls"), tokens: q.Has("tokens"), env: q["env"]}
	if text := q.Get("servers"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 5 {
			return s, fmt.Errorf("servers=%s is not in 1 … 5", text)
		}
		s.servers = n
	}
	return s, nil
}

// A world is a few servers with one store. A test sees its exported fields.
type world struct {
	Name      string   `json:"world"`
	URL       string   `json:"url"` // of all servers
	Servers   []string `json:"servers"`
	CertFile  string   `json:"cert_file,omitempty"`
	Token     string   `json:"token,omitempty"`      // for everything
	WeakToken string   `json:"weak_token,omitempty"` // for nothing but the tag "weak"

	spec   spec
	binary string
	dir    string
	env    []string
	nodes  []*node
}

func newWorld(binary string, s spec) (_ *world, err error) {
	dir, err := os.MkdirTemp("", "leaf-clients-")
	if err != nil {
		return nil, err
	}
	w := &world{spec: s, binary: binary, dir: dir, env: append(s.env, "LEAF_ID_SPACE="+dir, "LEAF_RESP=off", "LEAF_LOG_FORMAT=text")}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	scheme := "http"
	if s.tls {
		scheme = "https"
		err = w.certify()
	}
	if err == nil && s.tokens {
		err = w.writeTokens()
	}
	if err == nil {
		err = w.initStore()
	}
	if err != nil {
		return nil, err
	}
	for i := range s.servers {
		n, err := newNode(w, i)
		if err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, n)
		w.Servers = append(w.Servers, scheme+"://"+n.proxy.addr())
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	hosts := strings.ReplaceAll(strings.Join(w.Servers, ","), scheme+"://", "")
	w.URL = scheme + "://" + hosts
	return w, w.fill()
}

func (w *world) close() {
	for _, n := range w.nodes {
		n.kill()
		n.proxy.close()
	}
	_ = os.RemoveAll(w.dir) // the world is over
}

// fill creates the tags and the pools.
func (w *world) fill() error {
	for _, tag := range w.spec.tags {
		parts := strings.Split(tag, ":")
		if len(parts) < 2 {
			return fmt.Errorf("tag=%s is not NAME:STEP", tag)
		}
		args := []string{"tag", "create", parts[0], "--step", parts[1]}
		for _, option := range parts[2:] {
			if !strings.Contains(option, "=") { // the rest of a value with a colon
				args[len(args)-1] += ":" + option
				continue
			}
			args = append(args, "--"+option)
		}
		if err := w.command(args...); err != nil {
			return err
		}
	}
	for _, pool := range w.spec.pools {
		parts := strings.Split(pool, ":")
		if len(parts) != 3 {
			return fmt.Errorf("pool=%s is not NAME:WORKERBITS:SEQUENCEBITS", pool)
		}
		layout := fmt.Sprintf("epoch=2026-01-01T00:00:00Z,worker=%s,sequence=%s", parts[1], parts[2])
		if err := w.command("worker", "pool", "create", parts[0], "--layout", layout, "--max-ttl", "1m"); err != nil {
			return err
		}
	}
	return nil
}

// store returns the file of the store.
func (w *world) store() string { return filepath.Join(w.dir, "leaf.db") }

func (w *world) initStore() error {
	return w.leaf("init", "--store", "sqlite:"+w.store(), "--workers", "sqlite:"+w.store())
}

// command runs leaf as a client of the first server, without its proxy.
func (w *world) command(args ...string) error {
	scheme, _, _ := strings.Cut(w.URL, "://")
	target, _ := w.nodes[0].proxy.now()
	return w.leaf(append(args, "--server", scheme+"://"+target)...)
}

func (w *world) leaf(args ...string) error {
	cmd := exec.Command(w.binary, args...)
	cmd.Env = append(environment(), "LEAF_TOKEN="+w.Token)
	if w.CertFile != "" {
		cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+w.CertFile)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("leaf %q: %w: %s", args, err, out)
	}
	return nil
}

// environment is this process's without settings of Leaf.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEAF_") })
}

// writeTokens makes two tokens.
func (w *world) writeTokens() error {
	var file strings.Builder
	file.WriteString("tokens:\n")
	for name, token := range map[string]*string{"all": &w.Token, "weak": &w.WeakToken} {
		secret := filepath.Join(w.dir, name)
		args := []string{"token", "new", "--name", name, "--secret-file", secret, "--take", name}
		if name == "all" {
			args = append(args[:len(args)-1], "*", "--right", "admin", "--right", "worker")
		}
		cmd := exec.Command(w.binary, args...)
		out, err := cmd.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			return fmt.Errorf("make a token: %w", err)
		}
		text, err := os.ReadFile(secret)
		if err != nil {
			return err
		}
		*token = strings.TrimSpace(string(text))
		file.WriteString(string(out))
	}
	path := filepath.Join(w.dir, "tokens.yaml")
	w.env = append(w.env, "LEAF_TOKENS_FILE="+path)
	return os.WriteFile(path, []byte(file.String()), 0o600)
}
