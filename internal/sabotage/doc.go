// Package sabotage has rules broken on purpose, to see that the fault lab notices. Only builds
// with the tag leafsabotage can break one; in all others [Broken] is constant, and costs nothing.
package sabotage
