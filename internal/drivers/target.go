package drivers

import (
	"cmp"
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
	"github.com/leaf-id/leaf/internal/edit"
)

const (
	// Parameters of every registry URL with parameters.
	paramReclaim    = "reclaim"
	paramClaimDelay = "claim_delay"

	// The parameter of every store URL with parameters: the required identity of the store.
	paramStoreID = "store_id"

	// Parameters that name PEM files: who signs the server's certificate, and the
	// client's own certificate with its key.
	paramCA   = "ca"
	paramCert = "cert"
	paramKey  = "key"
)

// A target is a URL, taken apart as far as its driver has asked for.
type target struct {
	scheme string
	rest   string // what follows it and its colon
	log    *slog.Logger

	// After query.
	address    string // the part before the parameters
	params     url.Values
	forWorkers string // a parameter that only a registry has
	reclaim    bool
	claimDelay time.Duration
	storeID    string

	// After cutUser, which takes it from address.
	user, password string
	hasPassword    bool
}

func newTarget(scheme, rest string) *target {
	return &target{scheme: scheme, rest: rest, log: slog.New(slog.DiscardHandler)}
}

// malformed is a fault in the form of a URL, which [Open] adds. It never quotes the URL, which may
// have a password.
type malformed string

func (m malformed) Error() string { return string(m) }

// invalid is an error about a URL that does not ask for its form.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", leaf.ErrInvalid, fmt.Errorf(format, args...))
}

// query splits a URL at the question mark behind its user and password, and takes the
// parameters apart; known are those of the driver.
func (u *target) query(known ...string) (err error) {
	at := strings.LastIndex(u.rest, "@") + 1
	hosts, query, _ := strings.Cut(u.rest[at:], "?")
	u.address = u.rest[:at] + hosts
	if u.params, err = url.ParseQuery(query); err != nil {
		return malformed("the parameters are malformed")
	}
	known = append(known, paramReclaim, paramClaimDelay, paramStoreID)
	for _, name := range slices.Sorted(maps.Keys(u.params)) {
		switch {
		case !slices.Contains(known, name):
			return unknownParam(name, known)
		case len(u.params[name]) > 1:
			return invalid("parameter %q is given more than once", name)
		}
	}
	return u.cutTerms()
}

// cutTerms takes the parameters that any store or registry has out of those of the driver.
func (u *target) cutTerms() (err error) {
	if u.params.Has(paramReclaim) {
		u.forWorkers = paramReclaim
		if u.reclaim = u.params.Get(paramReclaim) == "machine"; !u.reclaim {
			return invalid("%s: the only value is machine", paramReclaim)
		}
	}
	if u.params.Has(paramClaimDelay) {
		u.forWorkers = paramClaimDelay
		u.claimDelay, err = time.ParseDuration(u.params.Get(paramClaimDelay))
		if err != nil || u.claimDelay < 0 {
			return invalid("%s is not a duration such as 30s, or 0", paramClaimDelay)
		}
		u.claimDelay = cmp.Or(u.claimDelay, -1)
	}
	if u.storeID = u.params.Get(paramStoreID); u.storeID == "" && u.params.Has(paramStoreID) {
		return invalid("%s is empty", paramStoreID)
	}
	u.params.Del(paramStoreID)
	u.params.Del(paramReclaim)
	u.params.Del(paramClaimDelay)
	return nil
}

// unknownParam reports an unknown parameter.
func unknownParam(name string, known []string) error {
	text := fmt.Sprintf("unknown parameter %q (known: %s)", name, strings.Join(known, ", "))
	if near := nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return invalid("%s", text)
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

// oneOf reports a parameter with another value than these.
func (u *target) oneOf(name string, values ...string) error {
	if u.params.Has(name) && !slices.Contains(values, u.params.Get(name)) {
		return malformed(name + " is none of " + strings.Join(values, ", "))
	}
	return nil
}

// number returns a numeric parameter from least to most; 0 if it is missing.
func (u *target) number(name string, least, most int) (int, error) {
	if !u.params.Has(name) {
		return 0, nil
	}
	n, err := strconv.Atoi(u.params.Get(name))
	if err != nil || n < least || n > most {
		return 0, malformed(fmt.Sprintf("%s is not a number from %d to %d", name, least, most))
	}
	return n, nil
}

// duration sets d to a duration parameter, if present.
func (u *target) duration(name string, d *time.Duration) (err error) {
	if !u.params.Has(name) {
		return nil
	}
	if *d, err = time.ParseDuration(u.params.Get(name)); err != nil || *d <= 0 {
		return malformed(name + " is not a duration above 0 such as 5s")
	}
	return nil
}

// cutUser takes the slashes, the user and the password off the address.
func (u *target) cutUser() (err error) {
	var ok bool
	if u.address, ok = strings.CutPrefix(u.address, "//"); !ok {
		return malformed("two slashes are missing after the scheme")
	}
	at := strings.LastIndex(u.address, "@")
	if at < 0 {
		return nil
	}
	u.user, u.password, u.hasPassword = strings.Cut(u.address[:at], ":")
	u.address = u.address[at+1:]
	if u.user, err = url.PathUnescape(u.user); err == nil {
		u.password, err = url.PathUnescape(u.password)
	}
	if err != nil {
		return malformed("the user name or the password is not percent-encoded: write %25 for a percent sign")
	}
	return nil
}

// cluster takes user:password@h1:port,h2/path apart.
func (u *target) cluster(port string) (hosts []string, path string, err error) {
	if err := u.cutUser(); err != nil {
		return nil, "", err
	}
	list, path, _ := strings.Cut(u.address, "/")
	if hosts, err = hostPorts(list, port); err != nil {
		return nil, "", err
	}
	if path, err = url.PathUnescape(path); err != nil {
		return nil, "", malformed("the path is malformed")
	}
	return hosts, path, nil
}

// hostPorts returns host:port, in small letters, for each of several hosts with or without
// a port.
func hostPorts(list, defaultPort string) (hosts []string, err error) {
	for host := range strings.SplitSeq(list, ",") {
		u := url.URL{Host: host}
		port := cmp.Or(u.Port(), defaultPort)
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || u.Hostname() == "" ||
			strings.ContainsAny(u.Hostname(), " /@:") && !strings.HasPrefix(host, "[") {
			return nil, malformed("a host or its port is malformed")
		}
		hosts = append(hosts, net.JoinHostPort(strings.ToLower(u.Hostname()), port))
	}
	return hosts, nil
}

// sortedList joins hosts for a key: their order does not matter.
func sortedList(hosts []string) string {
	return strings.Join(slices.Sorted(slices.Values(hosts)), ",")
}

// modeTLS returns the encryption of the parameter tls and those of the files; nil: no encryption.
func (u *target) modeTLS() (*tls.Config, error) {
	mode := u.params.Get("tls")
	if err := u.oneOf("tls", "true", "false", "skip-verify"); err != nil {
		return nil, err
	}
	if mode == "skip-verify" && u.params.Has(paramCA) {
		return nil, malformed("tls=skip-verify has no use for ca")
	}
	config, err := u.cutTLS(mode == "true" || mode == "skip-verify", "add tls=true to the URL")
	if err == nil && mode == "skip-verify" {
		config.InsecureSkipVerify = true
	}
	return config, err
}

// cutTLS removes the parameters of the files and returns their encryption. Without encryption these
// parameters are an error, and the result is nil; how says how to turn it on.
func (u *target) cutTLS(on bool, how string) (*tls.Config, error) {
	ca, cert, key := u.params.Get(paramCA), u.params.Get(paramCert), u.params.Get(paramKey)
	for _, name := range []string{paramCA, paramCert, paramKey} {
		u.params.Del(name)
	}
	switch {
	case !on && ca+cert+key != "":
		return nil, invalid("ca, cert and key are for TLS: %s", how)
	case !on:
		return nil, nil
	case (cert == "") != (key == ""):
		return nil, invalid("cert and key belong together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, invalid("ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("ca: there is no PEM certificate in %s", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, invalid("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
