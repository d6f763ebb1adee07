// Package mutant switches one planted fault on, in a copy of the code.
package mutant

import (
	"cmp"
	"os"
	"strconv"
)

var active, _ = strconv.Atoi(os.Getenv("LEAFLAB_MUTANT"))

// On reports whether a fault is on. Faults count from 1.
func On(n int) bool { return n == active }

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// The functions below do what they are named for, or another thing if a fault is on.

func Add[T integer](n int, a, b T) T {
	if On(n) {
		return a - b
	}
	return a + b
}

func Sub[T integer](n int, a, b T) T {
	if On(n) {
		return a + b
	}
	return a - b
}

func Mul[T integer](n int, a, b T) T {
	if On(n) {
		return a / b
	}
	return a * b
}

func Div[T integer](n int, a, b T) T {
	if On(n) {
		return a * b
	}
	return a / b
}

func And[T integer](n int, a, b T) T {
	if On(n) {
		return a | b
	}
	return a & b
}

func Or[T integer](n int, a, b T) T {
	if On(n) {
		return a & b
	}
	return a | b
}

func Shl[T, S integer](n int, a T, b S) T {
	if On(n) {
		return a >> b
	}
	return a << b
}

func Shr[T, S integer](n int, a T, b S) T {
	if On(n) {
		return a << b
	}
	return a >> b
}

func Min[T cmp.Ordered](n int, a, b T) T {
	if On(n) {
		return max(a, b)
	}
	return min(a, b)
}

func Max[T cmp.Ordered](n int, a, b T) T {
	if On(n) {
		return min(a, b)
	}
	return max(a, b)
}

// Err returns nil if the fault is on.
func Err(n int, err error) error {
	if On(n) {
		return nil
	}
	return err
}

// Zero returns the zero value if the fault is on.
func Zero[T any](n int, v T) T {
	if On(n) {
		return *new(T)
	}
	return v
}
