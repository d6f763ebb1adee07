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

// Parameters of every store URL, or of every registry URL.
const (
	paramReclaim    = "reclaim"
	paramClaimDelay = "claim_delay"
	paramStoreID    = "store_id"
)

// tlsParams name PEM files: who signs the server's certificate, and the client's own certificate
// with its key.
var tlsParams = []string{"ca", "cert", "key"}

// A target is a URL, which its driver takes apart. The first problem stays in err; later calls then
// change nothing that matters.
type target struct {
	driver
	rest string // what follows the scheme and its colon
	only string // the one host to open, by its name; "": all of them
	log  *slog.Logger
	err  error

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

func newTarget(d driver, rest string) *target {
	return &target{driver: d, rest: rest, log: slog.New(slog.DiscardHandler)}
}

// malformed is a fault in the form of a URL, which [Open] adds. It never quotes the URL, which may
// have a password.
type malformed string

func (m malformed) Error() string { return string(m) }

// invalid is an error about a URL that does not ask for its form.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", leaf.ErrInvalid, fmt.Errorf(format, args...))
}

func (u *target) fail(err error) { u.err = cmp.Or(u.err, err) }

// malformed fails with a fault in the form.
func (u *target) malformed(format string, args ...any) {
	u.fail(malformed(fmt.Sprintf(format, args...)))
}

// query splits a URL at the question mark behind its user and password, and takes the
// parameters apart; known are those of the driver.
func (u *target) query(known ...string) {
	at := strings.LastIndex(u.rest, "@") + 1
	hosts, query, _ := strings.Cut(u.rest[at:], "?")
	u.address = u.rest[:at] + hosts
	var err error
	if u.params, err = url.ParseQuery(query); err != nil {
		u.malformed("the parameters are malformed")
		return
	}
	known = append(known, paramReclaim, paramClaimDelay, paramStoreID)
	for _, name := range slices.Sorted(maps.Keys(u.params)) {
		if near := nearest(name, known); !slices.Contains(known, name) && near != "" {
			u.fail(invalid("unknown parameter %q (known: %s); did you mean %s?", name, strings.Join(known, ", "), near))
		} else if !slices.Contains(known, name) {
			u.fail(invalid("unknown parameter %q (known: %s)", name, strings.Join(known, ", ")))
		} else if len(u.params[name]) > 1 {
			u.fail(invalid("parameter %q is given more than once", name))
		}
	}
	u.cutTerms()
}

// cutTerms takes the parameters that any store or registry has out of those of the driver.
func (u *target) cutTerms() {
	if text, ok := u.cut(paramReclaim); ok {
		if u.forWorkers, u.reclaim = paramReclaim, true; text != "machine" {
			u.fail(invalid("%s: the only value is machine", paramReclaim))
		}
	}
	if text, ok := u.cut(paramClaimDelay); ok {
		d, err := time.ParseDuration(text)
		if u.forWorkers, u.claimDelay = paramClaimDelay, cmp.Or(d, -1); err != nil || d < 0 {
			u.fail(invalid("%s is not a duration such as 30s, or 0", paramClaimDelay))
		}
	}
	var ok bool
	if u.storeID, ok = u.cut(paramStoreID); ok && u.storeID == "" {
		u.fail(invalid("%s is empty", paramStoreID))
	}
}

// cut takes a parameter out of the others.
func (u *target) cut(name string) (value string, ok bool) {
	value, ok = u.params.Get(name), u.params.Has(name)
	u.params.Del(name)
	return value, ok
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
	value := u.params.Get(name)
	if u.params.Has(name) && !slices.Contains(values, value) {
		u.malformed("%s is not one of %s", name, strings.Join(values, ", "))
	}
	return value
}

// number returns a numeric parameter from least to most; 0 if it is missing.
func (u *target) number(name string, least, most int) int {
	n, err := strconv.Atoi(u.params.Get(name))
	if u.params.Has(name) && (err != nil || n < least || n > most) {
		u.malformed("%s is not a number from %d to %d", name, least, most)
	}
	return n
}

// duration sets d to a duration parameter, if present.
func (u *target) duration(name string, d *time.Duration) {
	if !u.params.Has(name) {
		return
	}
	var err error
	if *d, err = time.ParseDuration(u.params.Get(name)); err != nil || *d <= 0 {
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

// servers returns the hosts to open.
func (u *target) servers(list, defaultPort string) []string {
	hosts := u.hostPorts(list, defaultPort)
	if u.only != "" {
		return []string{u.only}
	}
	return hosts
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
	config := u.cutTLS(mode == "true" || mode == "skip-verify", "add tls=true to the URL")
	if config != nil {
		config.InsecureSkipVerify = mode == "skip-verify"
	}
	return config
}

// cutTLS removes the parameters of the files and returns their encryption. Without encryption these
// parameters are an error, and the result is nil; how says how to turn it on.
func (u *target) cutTLS(on bool, how string) *tls.Config {
	ca, _ := u.cut("ca")
	cert, _ := u.cut("cert")
	key, _ := u.cut("key")
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
