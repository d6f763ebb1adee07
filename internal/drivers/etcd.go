package drivers

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
)

const etcdPort = "2379"

// An etcdURL is an etcd: URL taken apart.
type etcdURL struct {
	endpoints []string
	opts      etcd.Options
}

func openEtcd(rest string, o *Options) (Store, error) {
	u, err := parseEtcd(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	db, err := etcd.Open(u.endpoints, &u.opts)
	if err != nil {
		return nil, err
	}
	return kvStore{db.Store(), db}, nil
}

func initEtcd(ctx context.Context, rest string, o InitOptions) error {
	u, err := parseEtcd(rest, nil)
	if err != nil {
		return err
	}
	return withDB(u.open, func(db *kv.DB) error { return db.Init(ctx, o.Tags) })
}

func existsEtcd(ctx context.Context, rest string) (exists bool, err error) {
	u, err := parseEtcd(rest, nil)
	if err != nil {
		return false, err
	}
	err = withDB(u.open, func(db *kv.DB) error {
		exists, err = db.Store().Exists(ctx)
		return err
	})
	return exists, err
}

func (u *etcdURL) open() (*kv.DB, error) { return etcd.Open(u.endpoints, &u.opts) }

func keyEtcd(rest string) (string, error) {
	u, err := parseEtcd(rest, nil)
	if err != nil {
		return "", err
	}
	return u.key(), nil
}

func parseEtcdRegistry(rest string) (registrySource, error) {
	rest, query, _ := strings.Cut(rest, "?")
	params, err := parseParams(query)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, false)
	if err != nil {
		return registrySource{}, err
	}
	rest += "?" + params.Encode()
	u, err := parseEtcd(rest, nil)
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:   u.key(),
		terms: terms,
		open: func(o RegistryOptions) (Registry, error) {
			opts := u.opts
			opts.Logger = o.Logger
			db, err := etcd.Open(u.endpoints, &opts)
			if err != nil {
				return nil, err
			}
			return kvRegistry{db.Registry(), db}, nil
		},
		init: func(ctx context.Context) error {
			return withDB(u.open, func(db *kv.DB) error { return db.InitRegistry(ctx) })
		},
		exists: func(ctx context.Context) (exists bool, err error) {
			err = withDB(u.open, func(db *kv.DB) error {
				exists, err = db.Registry().Exists(ctx)
				return err
			})
			return exists, err
		},
	}, nil
}

// parseEtcd reads //user:password@h1:2379,h2:2379/prefix?parameters.
func parseEtcd(rest string, logger *slog.Logger) (etcdURL, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return etcdURL{}, badEtcd("two slashes are missing after the scheme")
	}
	rest, query, _ := strings.Cut(rest, "?")
	u := etcdURL{opts: etcd.Options{Logger: logger}}
	var err error
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err = u.setUser(rest[:at]); err != nil {
			return etcdURL{}, err
		}
		rest = rest[at+1:]
	}
	hosts, prefix, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		endpoint, ok := hostPort(host, etcdPort)
		if !ok {
			return etcdURL{}, badEtcd("a host or its port is malformed")
		}
		u.endpoints = append(u.endpoints, endpoint)
	}
	if prefix, err = url.PathUnescape(strings.Trim(prefix, "/")); err != nil {
		return etcdURL{}, badEtcd("the prefix is malformed")
	}
	if u.opts.Prefix = etcd.DefaultPrefix; prefix != "" {
		u.opts.Prefix = "/" + prefix
	}
	params, err := parseParams(query)
	if err == nil {
		err = u.setParams(params)
	}
	return u, err
}

func (u *etcdURL) setUser(userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	if u.opts.Username, err = url.PathUnescape(user); err != nil {
		return badEtcd("the user name is not percent-encoded: write %25 for a percent sign")
	}
	if u.opts.Password, err = url.PathUnescape(password); err != nil {
		return badEtcd("the password is not percent-encoded: write %25 for a percent sign")
	}
	if u.opts.Username == "" || u.opts.Password == "" {
		return badEtcd("a user of etcd needs a name and a password")
	}
	return nil
}

func (u *etcdURL) setParams(params url.Values) error {
	if err := onlyParams(params, "tls", paramCA, paramCert, paramKey, "http"); err != nil {
		return err
	}
	if params.Has("http") {
		for host := range strings.SplitSeq(params.Get("http"), ",") {
			endpoint, ok := hostPort(host, etcdPort)
			if !ok {
				return badEtcd("a host or its port in http is malformed")
			}
			u.opts.HTTP = append(u.opts.HTTP, endpoint)
		}
	}
	mode := params.Get("tls")
	if !slices.Contains([]string{"", "false", "true", "skip-verify"}, mode) {
		return badEtcd("tls is none of true, false, skip-verify")
	}
	if mode == "skip-verify" && params.Has(paramCA) {
		return badEtcd("tls=skip-verify has no use for ca")
	}
	var err error
	u.opts.TLS, err = cutTLS(params, mode == "true" || mode == "skip-verify", "add tls=true to the URL")
	if err == nil && mode == "skip-verify" {
		u.opts.TLS.InsecureSkipVerify = true
	}
	return err
}

func (u etcdURL) key() string {
	return "//" + strings.Join(slices.Sorted(slices.Values(u.endpoints)), ",") + u.opts.Prefix
}

// badEtcd never quotes the URL, which may hold a password.
func badEtcd(what string) error {
	return fmt.Errorf("%w: %s: write etcd://h1:2379,h2:2379/prefix, or etcd://user:password@h1:2379/prefix?tls=true&ca=FILE", leaf.ErrInvalid, what)
}
