//go:build leafsabotage

package snowflake

// Sabotage names the rule that is broken, for the fault lab's test of itself. No other build
// has it.
var Sabotage string

func sabotaged(rule string) bool { return Sabotage == rule }
