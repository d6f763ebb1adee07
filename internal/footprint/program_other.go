//go:build !linux

package footprint

func dropProgram() {}
