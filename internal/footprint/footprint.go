// Package footprint keeps the resident memory of an idle program small.
package footprint

import "runtime/debug"

// Shrink gives memory that only the start of the program needed back to the system: garbage, and on
// Linux the pages of the program file. It takes some milliseconds of processor time.
func Shrink() {
	debug.FreeOSMemory()
	dropProgram()
}
