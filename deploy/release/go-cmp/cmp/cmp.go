// Package cmp has the one function of go-cmp that the server calls.
package cmp

import (
	"fmt"
	"reflect"
)

// Diff returns both values if they differ, and nothing if they are equal.
func Diff(x, y any) string {
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return fmt.Sprintf("-%v\n+%v\n", x, y)
}
