package main

import (
	"strings"

	"github.com/leaf-id/leaf/internal/drivers"
)

// explainStore adds to an error of the store at url what to do about it.
func explainStore(err error, url string) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case strings.Contains(err.Error(), "leaf init"):
		return hinted(err, "leaf init --store %s", shellWord(drivers.Redact(url)))
	}
	return err
}
