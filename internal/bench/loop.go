package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// loop is a running bare loop (src/loop.c).
type loop struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// buildLoop compiles the bare loop.
func (b *bench) buildLoop() (string, error) {
	out := filepath.Join(b.dir, "loop")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	cmd := exec.CommandContext(b.ctx, cc, "-O2", "-static", "-o", out, "internal/bench/src/loop.c")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the bare loop: %s: %w: %s (apt-get install gcc libc6-dev; run from the project's root)", cmd, err, text)
	}
	return out, nil
}

func startLoop(program string, args ...string) (*loop, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	// As the lanes: in a session of its own, so that where the scheduler
	// shares the CPUs out by session (autogroup) both sides get the same.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &loop{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// once runs the loop's command once and returns its time in ns.
func (l *loop) once() (float64, error) {
	if _, err := l.in.Write([]byte{'\n'}); err != nil {
		return 0, err
	}
	line, err := l.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	ns, status, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok || status != "0" {
		return 0, fmt.Errorf("the bare loop's command failed: %q", line)
	}
	return strconv.ParseFloat(ns, 64)
}

func (l *loop) close() {
	l.in.Close()
	_ = l.cmd.Wait()
}
