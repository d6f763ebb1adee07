package drivers

import (
	"net/url"
	"strings"
)

// Redact returns a URL fit for logs and errors: without the password, however
// malformed it is. Rather than a part of a password it leaves out too much.
func Redact(storeURL string) string {
	if strings.HasPrefix(strings.ToLower(storeURL), "sqlite:") {
		return storeURL // the path may hold any character, and no password
	}
	head, rest, ok := strings.Cut(storeURL, "//")
	if !ok {
		if at := strings.LastIndex(storeURL, "@"); at >= 0 {
			return "xxxxx" + storeURL[at:]
		}
		return redactQuery(storeURL)
	}
	if strings.HasPrefix(strings.ToLower(head), "ticket+") {
		return head + "//" + redactServers(rest)
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if user, _, hasPassword := strings.Cut(rest[:at], ":"); hasPassword {
			rest = user + ":xxxxx" + rest[at:]
		} else if strings.EqualFold(head, "nats:") {
			rest = "xxxxx" + rest[at:] // a token
		}
	} else if host, port, found := strings.Cut(rest, ":"); found && !startsWithPort(port) {
		rest = host + ":xxxxx" // user:password whose host was forgotten
	}
	return head + "//" + redactQuery(rest)
}

// redactServers is [Redact] for servers between commas, each with a user and a password,
// which may hold a comma or a question mark too: only what is certainly a host and a
// database is shown.
func redactServers(rest string) string {
	list, _, _ := strings.Cut(rest, "?")
	servers := strings.Split(list, ",")
	for i, server := range servers {
		at := strings.LastIndex(server, "@")
		switch {
		case at >= 0:
			servers[i] = "xxxxx" + server[at:]
		case !strings.Contains(server, "/"):
			servers[i] = "xxxxx"
		}
	}
	return strings.Join(servers, ",")
}

func startsWithPort(s string) bool {
	port, _, _ := strings.Cut(s, "/")
	port, _, _ = strings.Cut(port, "?")
	port, _, _ = strings.Cut(port, ",")
	return port != "" && strings.Trim(port, "0123456789") == ""
}

// redactQuery hides the values of parameters whose names tell a secret.
func redactQuery(rest string) string {
	path, query, ok := strings.Cut(rest, "?")
	if !ok {
		return rest
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		for _, secret := range []string{"pass", "pwd", "secret", "token"} {
			if strings.Contains(strings.ToLower(name), secret) {
				params[i] = name + "=xxxxx"
			}
		}
	}
	return path + "?" + strings.Join(params, "&")
}
