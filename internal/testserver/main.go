package testserver

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package with a common server, and returns their exit code.
func Main[S interface{ Close() }](m *testing.M, shared *S, start func() (S, error)) int {
	var err error
	if *shared, err = start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer (*shared).Close()
	return m.Run()
}
