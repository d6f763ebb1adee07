package drivers

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

var portFirst = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+([/?,]|$)`)
})

// secretParam matches a parameter whose name tells a secret.
var secretParam = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)([?&][^?&=]*(?:pass|pwd|secret|token)[^?&=]*=)[^&]*`)
})

// Redact returns a URL fit for logs and errors: without the password, however
// malformed it is. Rather than a part of a password it leaves out too much.
func Redact(storeURL string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(storeURL), ":")
	head, rest, slashes := strings.Cut(storeURL, "//")
	switch {
	case scheme == "sqlite":
		return storeURL // the path may hold any character, and no password
	case scheme == "cluster":
		name, _, _ := strings.Cut(storeURL, "?") // the files of certificates would fill a line
		return name
	case !slashes && strings.Contains(storeURL, "@"):
		return "xxxxx" + storeURL[strings.LastIndex(storeURL, "@"):]
	case !slashes:
		return secretParam().ReplaceAllString(storeURL, "${1}xxxxx")
	case strings.HasPrefix(scheme, "ticket+"):
		return head + "//" + redactServers(rest)
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if user, _, hasPassword := strings.Cut(rest[:at], ":"); hasPassword {
			rest = user + ":xxxxx" + rest[at:]
		} else if slices.Contains([]string{"nats", "leaf", "leafs"}, scheme) {
			rest = "xxxxx" + rest[at:] // a token
		}
	} else if host, port, found := strings.Cut(rest, ":"); found && !portFirst().MatchString(port) {
		rest = host + ":xxxxx" // user:password whose host was forgotten
	}
	return head + "//" + secretParam().ReplaceAllString(rest, "${1}xxxxx")
}

// redactServers is [Redact] for servers between commas, each with a user and a password, which may
// also have a comma or a question mark. It shows only certain hosts and databases.
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
