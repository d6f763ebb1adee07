package leaf

import "os"

// Rule names the rule that is broken. A server reads it from its environment.
var Rule = os.Getenv("LEAFLAB_SABOTAGE")

// Broken reports whether a rule is broken.
func Broken(rule string) bool { return Rule == rule }
