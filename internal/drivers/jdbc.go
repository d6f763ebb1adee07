package drivers

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// jdbcHead is how a JDBC URL of MySQL or MariaDB begins. What the Java drivers make of
// several hosts is said in between; here they are a list of which one that can be written
// is used.
var jdbcHead = regexp.MustCompile(`(?i)^jdbc:(mysql|mariadb)(:(loadbalance|replication|sequential|failover))?://`)

// FromJDBC returns the mysql: URL of a jdbc:mysql: or jdbc:mariadb: URL as it stands in a
// leaf.properties, read as Connector/J 5.1 reads it, with the user name and the password that
// stand beside it; where these are empty, the URL's own parameters user and password count.
// Of the other parameters it takes over those for encryption and time limits; the notices name
// the rest, which it ignores. Without a word on encryption it is used where the server offers
// it, unverified, as Connector/J does.
func FromJDBC(jdbcURL, user, password string) (_ string, notices []string, err error) {
	jdbcURL = strings.TrimSpace(jdbcURL)
	head := jdbcHead.FindString(jdbcURL)
	if head == "" {
		return "", nil, badJDBC("it does not begin with jdbc:mysql:// or jdbc:mariadb://")
	}
	address, query, _ := strings.Cut(jdbcURL[len(head):], "?")
	if strings.Contains(strings.ToLower(address), "address=") {
		return "", nil, badJDBC("address=(…) is not supported")
	}
	params, err := parseJDBCParams(query)
	if err != nil {
		return "", nil, err
	}
	host, name, _ := strings.Cut(address, "/")
	if host, err = jdbcHosts(host); err != nil {
		return "", nil, err
	}
	userinfo := escape(cmp.Or(user, params["user"]))
	if secret := cmp.Or(password, params["password"]); secret != "" {
		userinfo += ":" + escape(secret)
	}
	if userinfo != "" {
		userinfo += "@"
	}
	isMariaDB := strings.HasPrefix(strings.ToLower(head), "jdbc:mariadb:")
	values, used := fromJDBCParams(params, isMariaDB)
	result := "//" + userinfo + host + "/" + name + "?" + values.Encode()
	u := newTarget("mysql", result)
	if err := u.query(mysqlParams()...); err != nil {
		return "", nil, err
	}
	if _, _, err := u.mysqlConfig(); err != nil {
		return "", nil, badJDBC("its host, port or database is malformed")
	}
	if values.Get("tls") == tlsVerifyOffered {
		notices = append(notices, "useSSL=true without requireSSL=true: connections to a server without TLS are not encrypted, as in Java Leaf")
	}
	return "mysql:" + result, append(notices, ignoredJDBC(params, used)...), nil
}

// parseJDBCParams reads name=value&name=value as Connector/J does: it skips a pair without
// a name or a value, the last of several values counts, and names are taken as they are.
func parseJDBCParams(query string) (map[string]string, error) {
	params := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		if name == "" || text == "" {
			continue
		}
		value, err := url.QueryUnescape(text)
		if err != nil {
			return nil, badJDBC(fmt.Sprintf("the value of %q has a malformed escape", name))
		}
		params[name] = value
	}
	return params, nil
}

// jdbcHosts checks the hosts between commas and drops those that are named before.
func jdbcHosts(list string) (string, error) {
	if list == "" {
		return "localhost", nil // as Connector/J
	}
	var kept, seen []string
	for host := range strings.SplitSeq(list, ",") {
		known, err := hostPorts(host[strings.LastIndex(host, "@")+1:], "3306")
		if err != nil && strings.Contains(list, "@") { // which may follow a password
			return "", badJDBC("a host or its port is malformed")
		}
		if err != nil {
			return "", badJDBC(fmt.Sprintf("the host %q is malformed", host))
		}
		if !slices.Contains(seen, known[0]) {
			kept, seen = append(kept, host), append(seen, known[0])
		}
	}
	return strings.Join(kept, ","), nil
}

// ignoredJDBC says which of the parameters have no effect.
func ignoredJDBC(params map[string]string, used []string) (notices []string) {
	var ignored []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch rest, entity := strings.CutPrefix(name, "amp;"); {
		case slices.Contains(used, name):
		case entity:
			notices = append(notices, fmt.Sprintf("the parameter %q is ignored, as in Java Leaf: for %s write & in place of &amp;", name, rest))
		case name == "sessionVariables":
			notices = append(notices, name+" is ignored: this server does not set these variables in its sessions")
		default:
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		notices = append(notices, "these parameters are for the Java driver, or have no value that it knows, and are ignored: "+strings.Join(ignored, ", "))
	}
	return notices
}

// fromJDBCParams returns the parameters of the mysql: URL, and the names of those that they
// are made of.
func fromJDBCParams(params map[string]string, isMariaDB bool) (out url.Values, used []string) {
	used = []string{"user", "password", "useSSL", "requireSSL", "verifyServerCertificate"}
	mode, ok := jdbcModes[strings.ToUpper(params["sslMode"])]
	if ok {
		used = append(used, "sslMode")
	} else {
		mode = jdbcTLS(params, isMariaDB)
	}
	out = url.Values{"tls": {mode}}
	if ms, err := strconv.ParseUint(params["connectTimeout"], 10, 31); err == nil {
		used = append(used, "connectTimeout")
		if ms > 0 {
			out.Set("timeout", fmt.Sprintf("%dms", ms))
		}
	}
	if ms, err := strconv.ParseUint(params["socketTimeout"], 10, 31); err == nil {
		used = append(used, "socketTimeout")
		if ms > 0 {
			out.Set("readTimeout", fmt.Sprintf("%dms", ms))
			out.Set("writeTimeout", fmt.Sprintf("%dms", ms))
		}
	}
	return out, used
}

// jdbcModes are the values of sslMode, of MySQL's driver and of MariaDB's.
var jdbcModes = map[string]string{
	"DISABLED": "false", "PREFERRED": "preferred", "REQUIRED": "skip-verify", "VERIFY_CA": "true", "VERIFY_IDENTITY": "true",
	"DISABLE": "false", "TRUST": "skip-verify", "VERIFY-CA": "true", "VERIFY-FULL": "true",
}

// jdbcTLS reads the parameters that sslMode has replaced. MySQL's driver goes on without
// encryption where the server has none, unless requireSSL is true.
func jdbcTLS(params map[string]string, isMariaDB bool) string {
	is := func(name, short, long string) bool {
		return strings.EqualFold(params[name], short) || strings.EqualFold(params[name], long)
	}
	required := isMariaDB || is("requireSSL", "yes", "true")
	switch {
	case is("useSSL", "no", "false"):
		return "false"
	case is("useSSL", "yes", "true") && !is("verifyServerCertificate", "no", "false"):
		if required {
			return "true"
		}
		return tlsVerifyOffered
	case is("requireSSL", "yes", "true"):
		return "skip-verify"
	}
	return "preferred"
}

// escape percent-encodes every byte that is not plain anywhere in a URL.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func badJDBC(what string) error {
	return fmt.Errorf("%w: JDBC URL: %s: write jdbc:mysql://host:3306/db", leaf.ErrInvalid, what)
}
