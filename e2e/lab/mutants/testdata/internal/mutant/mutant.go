// Package mutant switches one planted fault on, in a copy of the code.
package mutant

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
)

var (
	active, _ = strconv.Atoi(os.Getenv("LEAFLAB_MUTANT"))
	reached   = mapFile(os.Getenv("LEAFLAB_REACHED"))
)

// mapFile maps a file with a byte for each fault into memory: so the bytes are written however the
// program ends.
func mapFile(name string) []byte {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return memory
}

// On reports whether a fault is on. Faults count from 1.
func On(n int) bool {
	if reached != nil {
		reached[n] = 1
	}
	return n == active
}

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
