package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// CPUSeconds is how much time of the CPU a process has used. The kernel counts hundredths of
// a second.
func CPUSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, which may hold anything but this
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, stat)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, err
}

// Resident is how many bytes of memory a process has now, and the most that it had.
func Resident(pid int) (now, most float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	if now, err = sizeIn(string(text), "VmRSS:"); err != nil {
		return 0, 0, err
	}
	most, err = sizeIn(string(text), "VmHWM:")
	return now, most, err
}

func sizeIn(status, name string) (float64, error) {
	_, rest, _ := strings.Cut(status, name)
	var kB float64
	_, err := fmt.Sscan(rest, &kB)
	return kB * 1024, err
}
