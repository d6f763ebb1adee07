package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// publish writes the result of an experiment into docs/performance-tables.md: its table, between its marks,
// and its rows of the table of goals.
func (l *lab) publish(name string, r report, origin string) error {
	text := fmt.Sprintf("\n%s\n\n%s\n\n", strings.TrimSpace(r.table), origin)
	if r.picture != "" {
		file := "img/bench-" + name + ".svg"
		err := os.MkdirAll(filepath.Join(l.root, "docs/img"), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(l.root, "docs", file), []byte(r.picture), 0o644)
		}
		if err != nil {
			return err
		}
		text = fmt.Sprintf("\n![%s](%s)\n%s", name, file, text)
	}
	path := filepath.Join(l.root, "docs/performance-tables.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	all, err := replaceBetween(string(page), name, func(string) string { return text })
	if err == nil {
		all, err = replaceBetween(all, "goals", func(old string) string { return updateGoals(old, r.found) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(all), 0o644)
}

// replaceBetween replaces the text between the marks of a name.
func replaceBetween(page, name string, text func(old string) string) (string, error) {
	begin, end := fmt.Sprintf("<!-- bench %s -->\n", name), fmt.Sprintf("<!-- end %s -->\n", name)
	head, rest, ok := strings.Cut(page, begin)
	old, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there are no marks %q … %q", begin, end)
	}
	return head + begin + text(old) + end + tail, nil
}

// origin names the machine, the date and the commit of a table.
func (l *lab) origin() string {
	commit, err := exec.Command("git", "-C", l.root, "describe", "--always", "--dirty", "--", ":!docs").Output()
	if err != nil {
		commit, err = exec.Command("git", "-C", l.root, "rev-parse", "--short", "HEAD").Output()
	}
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("*Commit %s, %s, %s, %d cores (%s), load before the run %s.*", strings.TrimSpace(string(commit)),
		time.Now().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), processor(), loadAverage())
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\t :")
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
