package drivers

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/edit"
)

// Parameters of every store URL, or of every registry URL.
const (
	paramReclaim    = "reclaim"
	paramClaimDelay = "claim_delay"
	paramStoreID    = "store_id"
)

// A target is a URL, which its driver takes apart. The first problem stays in err. The driver may go
// on, even open a backend: [target.backend] closes it then.
type target struct {
	driver
	rest string // what follows the scheme and its colon
	part string // of a URL with several servers, each with a database of its own: "server 2: "
	only string // the one host to open, by its name; "": all of them
	log  *slog.Logger
	err  error

	address string // the part before the parameters
	params  url.Values
	known   []string // the names of the parameters that were read

	// The driver sets these.
	key    string   // of the backend, without the scheme
	apart  []string // the hosts of a URL, where each can tell its identities
	traits Traits

	// After cutUser, which takes it from address.
	user, password string
	hasPassword    bool
}

func newTarget(d driver, rest string) *target {
	u := &target{driver: d, rest: rest, log: slog.New(slog.DiscardHandler)}
	if d.scheme != "sqlite" { // its path may have any character
		u.split()
	}
	return u
}

// split splits a URL at the question mark behind its user and password, and takes the parameters
// apart. An @ behind the first question mark ends the password only if nothing else can be meant: a
// wrong guess would contact another host.
func (u *target) split() {
	address, query, _ := strings.Cut(u.rest, "?")
	switch ats := strings.Count(query, "@"); {
	case ats == 1 && inPassword(address):
		more, hosts, _ := strings.Cut(query, "@")
		hosts, query, _ = strings.Cut(hosts, "?")
		address += "?" + more + "@" + hosts
	case ats > 0:
		u.fail(invalid("there is an @ after the question mark: write %%40 for it, and %%3F for a question mark in a password"))
		return
	}
	u.address = address
	var err error
	if u.params, err = url.ParseQuery(query); err != nil {
		u.malformed("the parameters are malformed")
	}
	for _, name := range slices.Sorted(maps.Keys(u.params)) {
		if len(u.params[name]) > 1 {
			u.fail(invalid("parameter %q is given more than once", name))
		}
	}
}

// inPassword reports whether an address, up to a question mark, ends within a password: it has a
// user, and no host yet.
func inPassword(address string) bool {
	user, password, ok := strings.Cut(strings.TrimPrefix(address, "//"), ":")
	return ok && !strings.HasPrefix(user, "[") && !strings.Contains(address, "@") && !portFirst().MatchString(password)
}

// check returns the problem of a URL whose parameters the driver has read. An unknown parameter
// comes first, because it may be the cause of others.
func (u *target) check() error {
	u.readTerms()
	for _, name := range slices.Sorted(maps.Keys(u.params)) {
		if slices.Contains(u.known, name) {
			continue
		}
		text := fmt.Sprintf("unknown parameter %q (known: %s)", name, strings.Join(u.known, ", "))
		if near := nearest(name, u.known); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		return invalid("%s", text)
	}
	return u.err
}

// readTerms reads the parameters that any store or registry has.
func (u *target) readTerms() {
	u.traits.Reclaim = u.oneOf(paramReclaim, "machine") != ""
	if text, ok := u.param(paramClaimDelay); ok {
		d, err := time.ParseDuration(text)
		if u.traits.ClaimDelay = cmp.Or(d, -1); err != nil || d < 0 {
			u.fail(invalid("%s is not a duration such as 30s, or 0", paramClaimDelay))
		}
	}
	var ok bool
	if u.traits.StoreID, ok = u.param(paramStoreID); ok && u.traits.StoreID == "" {
		u.fail(invalid("%s is empty", paramStoreID))
	}
}

// param returns a parameter, and whether the URL has it.
func (u *target) param(name string) (value string, ok bool) {
	u.known = append(u.known, name)
	return u.params.Get(name), u.params.Has(name)
}

// text returns a parameter; "" if it is missing.
func (u *target) text(name string) string {
	value, _ := u.param(name)
	return value
}

// invalid is an error about a URL.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", leaf.ErrInvalid, fmt.Errorf(format, args...))
}

func (u *target) fail(err error) { u.err = cmp.Or(u.err, err) }

// malformed fails with a fault in the form of the URL. It never quotes the URL, which may have a
// password.
func (u *target) malformed(format string, args ...any) {
	u.fail(invalid("%s%s: write %s", u.part, fmt.Sprintf(format, args...), u.form))
}

// nearest returns the most likely intended one of names, or "".
func nearest(text string, names []string) string {
	best, least := "", 3 // more than two typing errors are no typing error
	for _, n := range names {
		if d := edit.Distance(strings.ToLower(text), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// oneOf returns a parameter, which has one of these values or is missing.
func (u *target) oneOf(name string, values ...string) string {
	value, ok := u.param(name)
	switch {
	case !ok || slices.Contains(values, value):
	case len(values) == 1:
		u.malformed("%s: the only value is %s", name, values[0])
	default:
		u.malformed("%s is not one of %s", name, strings.Join(values, ", "))
	}
	return value
}

// number returns a numeric parameter from least to most; 0 if it is missing.
func (u *target) number(name string, least, most int) int {
	text, ok := u.param(name)
	n, err := strconv.Atoi(text)
	if ok && (err != nil || n < least || n > most) {
		u.malformed("%s is not a number from %d to %d", name, least, most)
	}
	return n
}

// duration sets d to a duration parameter, if present.
func (u *target) duration(name string, d *time.Duration) {
	text, ok := u.param(name)
	if !ok {
		return
	}
	var err error
	if *d, err = time.ParseDuration(text); err != nil || *d <= 0 {
		u.malformed("%s is not a duration above 0 such as 5s", name)
	}
}

// cutUser takes the slashes, the user and the password off the address.
func (u *target) cutUser() {
	var ok bool
	if u.address, ok = strings.CutPrefix(u.address, "//"); !ok {
		u.malformed("two slashes are missing after the scheme")
	}
	at := strings.LastIndex(u.address, "@")
	if at < 0 {
		return
	}
	u.user, u.password, u.hasPassword = strings.Cut(u.address[:at], ":")
	u.address = u.address[at+1:]
	var err1, err2 error
	u.user, err1 = url.PathUnescape(u.user)
	if u.password, err2 = url.PathUnescape(u.password); err1 != nil || err2 != nil {
		u.malformed("the user name or the password is not percent-encoded: write %%25 for a percent sign")
	}
}

// cluster takes user:password@h1:port,h2/path apart.
func (u *target) cluster(port string) (hosts []string, path string) {
	u.cutUser()
	list, path, _ := strings.Cut(u.address, "/")
	hosts = u.servers(list, port)
	path, err := url.PathUnescape(path)
	if err != nil {
		u.malformed("the path is malformed")
	}
	return hosts, path
}

// servers returns the hosts to open: all of a list, or the only one.
func (u *target) servers(list, defaultPort string) []string {
	hosts := u.hostPorts(list, defaultPort)
	if u.only != "" {
		return []string{u.only}
	}
	return hosts
}

// hosts returns the hosts of a URL with several. Each opens the same URL with one host.
func (u *target) hosts() (all []backend.Host) {
	if len(u.apart) < 2 {
		return nil
	}
	for _, name := range u.apart {
		all = append(all, backend.Host{Name: name, Identities: func(ctx context.Context) (map[string]string, error) {
			one := newTarget(u.driver, u.rest)
			one.only, one.log = name, u.log
			b, err := one.backend(name)
			if err != nil {
				return nil, err
			}
			defer b.Close()
			return b.DB.(interface {
				Identities(context.Context) (map[string]string, error)
			}).Identities(ctx)
		}})
	}
	return all
}

// hostPorts returns host:port, in small letters, for each of several hosts with or without a port.
func (u *target) hostPorts(list, defaultPort string) (hosts []string) {
	for host := range strings.SplitSeq(list, ",") {
		parts := url.URL{Host: host}
		port, name := cmp.Or(parts.Port(), defaultPort), parts.Hostname()
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || name == "" || strings.ContainsAny(name, " /@:") && host[0] != '[' {
			u.malformed("a host or its port is malformed")
		}
		hosts = append(hosts, net.JoinHostPort(strings.ToLower(name), port))
	}
	return hosts
}

// database returns the name of a database in a path.
func (u *target) database(path string) string {
	name, err := url.PathUnescape(path)
	if err != nil || name == "" || strings.Contains(path, "/") {
		u.malformed("the name of the database is missing or malformed")
	}
	return name
}

// sortedList joins hosts for a key: their order does not matter.
func sortedList(hosts []string) string {
	return strings.Join(slices.Sorted(slices.Values(hosts)), ",")
}

// modeTLS returns the encryption of the parameter tls and those of the files; nil: no encryption.
func (u *target) modeTLS() *tls.Config {
	mode := u.oneOf("tls", "true", "false", "skip-verify")
	if mode == "skip-verify" && u.params.Has("ca") {
		u.malformed("tls=skip-verify has no use for ca")
	}
	config := u.tlsConfig(mode == "true" || mode == "skip-verify", "add tls=true to the URL")
	if config != nil {
		config.InsecureSkipVerify = mode == "skip-verify"
	}
	return config
}

// tlsConfig returns the encryption with the PEM files of the parameters: who signs the server's
// certificate, and the client's own certificate with its key. Without encryption these parameters
// are an error, and the result is nil; how says how to turn it on.
func (u *target) tlsConfig(on bool, how string) *tls.Config {
	ca, cert, key := u.text("ca"), u.text("cert"), u.text("key")
	switch {
	case !on && ca+cert+key != "":
		u.fail(invalid("ca, cert and key are for TLS: %s", how))
		fallthrough
	case !on:
		return nil
	case (cert == "") != (key == ""):
		u.fail(invalid("cert and key belong together"))
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		config.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(ca); err != nil {
			u.fail(invalid("ca: %w", err))
		} else if !config.RootCAs.AppendCertsFromPEM(pem) {
			u.fail(invalid("ca: there is no PEM certificate in %s", ca))
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			u.fail(invalid("cert and key: %w", err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
