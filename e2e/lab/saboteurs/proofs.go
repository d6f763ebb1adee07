package saboteurs

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed proofs.txt
var proofs string

// A proof is a fault, with the rule of a conformance suite to notice it.
type proof struct{ fault, rule string }

func (p proof) String() string { return p.fault + ": " + p.rule }

// family begins the name of the fault.
func (p proof) family() string {
	family, _, _ := strings.Cut(p.fault, " ")
	return family
}

// shared is the code below several drivers. A fault without a family is in each of them.
var shared = []string{"kv", "sql"}

// families begin the names of faults in drivers: shared code, or the code of one driver.
var families = append([]string{"etcd", "redis", "nats", "zookeeper", "sqlite", "mysql", "postgres", "ticket"}, shared...)

// readProofs reads lines of a rule and its faults.
func readProofs(text string) (all []proof, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		rule, faults, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("proofs.txt: %q names no fault", line)
		}
		for fault := range strings.SplitSeq(faults, ", ") {
			if p := (proof{fault, rule}); slices.Contains(families, p.family()) {
				all = append(all, p)
				continue
			}
			for _, family := range shared {
				all = append(all, proof{family + " " + fault, rule})
			}
		}
	}
	return all, nil
}
