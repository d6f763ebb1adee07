package bench

import (
	"fmt"
	"os"
	"path/filepath"
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

// TreeSeconds is CPUSeconds of a process and its children, also those that have ended.
func TreeSeconds(pid int) (total float64, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 || fields[1] != strconv.Itoa(pid) && filepath.Dir(file) != fmt.Sprintf("/proc/%d", pid) {
			continue
		}
		times := fields[11:13]
		if fields[1] != strconv.Itoa(pid) {
			times = fields[11:15] // with those of the children that have ended
		}
		for _, field := range times {
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return 0, err
			}
			total += ticks / 100
		}
	}
	return total, nil
}

// A Memory is how many bytes of memory a process has.
type Memory struct {
	Resident float64
	Own      float64 // of these, not backed by files such as the program's
	Most     float64 // the peak
}

// MemoryOf looks at a process.
func MemoryOf(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for name, size := range map[string]*float64{"VmRSS:": &m.Resident, "RssAnon:": &m.Own, "VmHWM:": &m.Most} {
		if *size, err = sizeIn(string(text), name); err != nil {
			return m, fmt.Errorf("/proc/%d/status: %s %w", pid, name, err)
		}
	}
	return m, nil
}

func sizeIn(status, name string) (float64, error) {
	_, rest, _ := strings.Cut(status, name)
	var kB float64
	_, err := fmt.Sscan(rest, &kB)
	return kB * 1024, err
}

// Parts is resident memory in bytes by purpose, in the order of [PartNames].
type Parts [5]float64

// PartNames say what resident memory is for.
var PartNames = [5]string{"the program's code", "its constants and tables of functions", "its variables", "other files", "heap, stacks and what the runtime keeps"}

// PartsOf divides the resident memory of a process by purpose.
func PartsOf(pid int) (Parts, error) {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return Parts{}, err
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return Parts{}, err
	}
	return partsIn(string(maps), program)
}

func partsIn(smaps, program string) (parts Parts, err error) {
	part := 0
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "Rss:":
			kB, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return Parts{}, err
			}
			parts[part] += kB * 1024
		case !strings.HasSuffix(fields[0], ":"): // a mapping begins: addresses, rights, offset, device, inode, file
			part = partOf(fields, program)
		}
	}
	return parts, nil
}

func partOf(mapping []string, program string) int {
	file := ""
	if len(mapping) > 5 {
		file = mapping[5]
	}
	switch rights := mapping[1]; {
	case !strings.HasPrefix(file, "/"):
		return 4
	case file != program:
		return 3
	case strings.Contains(rights, "x"):
		return 0
	case strings.Contains(rights, "w"):
		return 2
	}
	return 1
}
