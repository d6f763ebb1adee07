// Package failures joins the errors of several servers on one line.
package failures

import (
	"slices"
	"strings"
)

// A List is what each of several servers had to say.
type List []error

// Error joins the texts, sorted: the same failures make the same text in any order.
func (l List) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (l List) Unwrap() []error { return l }

// Err returns the list as an error; nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
