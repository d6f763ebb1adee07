package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A jvm is a process of bench/jvm, which measures on demand.
type jvm struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startJVM builds the harness, which Maven fetches the peers for, and starts it.
func startJVM(ctx context.Context, l *lab) (*jvm, error) {
	dir := filepath.Join(l.root, "bench/jvm")
	build := exec.CommandContext(ctx, "mvn", "-q", "-B", "package")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build bench/jvm (Debian's maven and default-jdk-headless): %w\n%s", err, out)
	}
	libs, err := os.ReadFile(filepath.Join(dir, "target/classpath"))
	if err != nil {
		return nil, err
	}
	j := &jvm{cmd: exec.CommandContext(ctx, "java", "-cp", filepath.Join(dir, "target/classes")+":"+strings.TrimSpace(string(libs)), "Bench")}
	j.cmd.Stderr = os.Stderr
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.lines = bufio.NewScanner(out)
	if err := j.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := j.read(); line != "ready" {
		return nil, fmt.Errorf("bench/jvm says %q: %v", line, err)
	}
	return j, nil
}

func (j *jvm) read() (string, error) {
	if !j.lines.Scan() {
		return "", fmt.Errorf("the JVM has ended: %v", j.lines.Err())
	}
	return j.lines.Text(), nil
}

// measure returns the ns of one ID.
func (j *jvm) measure(name string, threads int, d time.Duration) (float64, error) {
	if _, err := fmt.Fprintf(j.in, "%s %d %d\n", name, threads, d.Milliseconds()); err != nil {
		return 0, err
	}
	line, err := j.read()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(line, 64)
}

func (j *jvm) stop() error { return errors.Join(j.in.Close(), j.cmd.Wait()) }
