package drivers

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/leaf-id/leaf"
)

// jdbcHead is the beginning of a JDBC URL of MySQL or MariaDB. In the middle it names the Java
// drivers' use of several hosts; here a list of hosts always means the writable one.
var jdbcHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^jdbc:(mysql|mariadb)(:(loadbalance|replication|sequential|failover))?://`)
})

// FromJDBC returns the mysql: URL of a jdbc:mysql: or jdbc:mariadb: URL in a leaf.properties, with
// the user name and the password next to it; if these are empty, the URL's own parameters user and
// password count. Of the other parameters it keeps those for encryption and time limits, and leaves
// out the rest, which tunes the Java driver. Without a parameter for encryption it uses encryption,
// unverified, if the server offers it, as Connector/J does.
func FromJDBC(jdbcURL, user, password string) (string, error) {
	jdbcURL = strings.TrimSpace(jdbcURL)
	head := jdbcHead().FindString(jdbcURL)
	if head == "" {
		return "", badJDBC("it does not begin with jdbc:mysql:// or jdbc:mariadb://")
	}
	rest := jdbcURL[len(head):]
	address, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return "", badJDBC("its parameters are malformed")
	}
	host, name, _ := strings.Cut(address, "/")
	if host == "" {
		host = "localhost" // as Connector/J
	}
	userinfo := escape(cmp.Or(user, params.Get("user")))
	if secret := cmp.Or(password, params.Get("password")); secret != "" {
		userinfo += ":" + escape(secret)
	}
	if userinfo != "" {
		userinfo += "@"
	}
	result := "//" + userinfo + host + "/" + name + "?" + fromJDBCParams(params).Encode()
	u := newTarget(driver{}, result)
	if u.mysqlServers(); u.err != nil {
		return "", badJDBC("its host, port or database is malformed")
	}
	return "mysql:" + result, nil
}

func fromJDBCParams(params url.Values) url.Values {
	out := url.Values{"tls": {jdbcTLS(params)}}
	if ms, err := strconv.ParseUint(params.Get("connectTimeout"), 10, 31); err == nil && ms > 0 {
		out.Set("timeout", fmt.Sprintf("%dms", ms))
	}
	if ms, err := strconv.ParseUint(params.Get("socketTimeout"), 10, 31); err == nil && ms > 0 {
		out.Set("readTimeout", fmt.Sprintf("%dms", ms))
		out.Set("writeTimeout", fmt.Sprintf("%dms", ms))
	}
	return out
}

// jdbcTLS reads sslMode, and the parameters that it has replaced.
func jdbcTLS(params url.Values) string {
	modes := map[string]string{"DISABLED": "false", "PREFERRED": "preferred", "REQUIRED": "skip-verify", "VERIFY_CA": "true", "VERIFY_IDENTITY": "true"}
	if mode, ok := modes[strings.ToUpper(params.Get("sslMode"))]; ok {
		return mode
	}
	use := params.Get("useSSL")
	switch {
	case strings.EqualFold(use, "false"):
		return "false"
	case strings.EqualFold(use, "true") && !strings.EqualFold(params.Get("verifyServerCertificate"), "false"):
		return "true"
	case strings.EqualFold(params.Get("requireSSL"), "true"):
		return "skip-verify"
	}
	return "preferred"
}

// escape percent-encodes every byte that is special anywhere in a URL.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func badJDBC(what string) error {
	return fmt.Errorf("%w: JDBC URL: %s: write jdbc:mysql://host:3306/db", leaf.ErrInvalid, what)
}
