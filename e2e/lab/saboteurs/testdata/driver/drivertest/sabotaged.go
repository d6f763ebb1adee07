package drivertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
)

// proved checks, in the place of a suite, that its rules notice the faults which the environment
// names: a line with a fault and the rule that has to notice it, or "*" for every rule. It prints
// what each rule had to say.
func proved[R any](t *testing.T, suite string, rules []R, nameOf func(R) string, run func(testing.TB, R, func(on bool)) error) bool {
	list := os.Getenv("LEAFLAB_FAULTS")
	if list == "" {
		return false
	}
	type proof struct{ fault, rule string }
	var proofs []proof
	for line := range strings.SplitSeq(list, "\n") {
		fault, rule, _ := strings.Cut(line, ": ")
		proofs = append(proofs, proof{fault, rule})
	}
	for _, r := range rules {
		name := suite + " " + nameOf(r)
		fmt.Printf("\nrule: %s\n", name)
		for _, p := range proofs {
			if p.rule != name && p.rule != "*" {
				continue
			}
			t.Run(nameOf(r), func(t *testing.T) {
				defer leaf.Break("")
				var err error
				returned := false
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
					if !returned || t.Failed() {
						err = fmt.Errorf("the test ended: %w", err)
					}
					sign := "nothing"
					if err != nil {
						sign = strings.Join(strings.Fields(err.Error()), " ")
					}
					fmt.Printf("\nproved: %s: %s: %s\n", p.fault, name, sign)
				}()
				err = run(t, r, func(on bool) { leaf.Break(map[bool]string{true: p.fault}[on]) })
				returned = true
			})
		}
	}
	return true
}

// whole makes a state without a fault, and then switches the fault on.
func whole[B any](fault func(on bool), newBackend func() B) B {
	fault(false)
	defer fault(true)
	return newBackend()
}
