package leafconn

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// FixedToken returns a token that never changes. It may end with a line feed, as files do.
func FixedToken(token string) func() (string, error) {
	token = strings.TrimSpace(token)
	return func() (string, error) { return token, nil }
}

// tokenAge is how long a token file is not looked at again.
const tokenAge = time.Second

// TokenFile returns the token in a file, which may be replaced at any time.
func TokenFile(name string) func() (string, error) {
	var mu sync.Mutex
	var token string
	var read time.Time
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(read) < tokenAge {
			return token, nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		found := strings.TrimSpace(string(text))
		if found == "" {
			return "", fmt.Errorf("read the token: %s is empty", name)
		}
		token, read = found, time.Now()
		return token, nil
	}
}
