// Package cli finds the command lines of engines and runs their commands, with limits of time
// and output. Errors have the command as it can be pasted into a shell.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/thread"
)

// Program is an engine's command line.
type Program struct {
	Path   string   // absolute
	Args   []string // before the verb
	Env    []string // "NAME=value", in addition to [lane.Environment]
	Mounts *os.File // mount namespace; nil for tare's own
}

// Find finds the program of e, or the usual one, on PATH, with its environment: e's, and tare's
// variables of these names. A name may end in * ("CONTAINERS_*").
func Find(e subject.Engine, usual string, variables ...string) (Program, error) {
	name := cmp.Or(e.Command, usual)
	file, err := exec.LookPath(name)
	if err != nil {
		return Program{}, fmt.Errorf("no %s on PATH: %w", name, errors.Unwrap(err))
	}
	if file, err = filepath.Abs(file); err != nil {
		return Program{}, err
	}
	return Program{Path: file, Args: slices.Clone(e.Args), Env: environ(e, variables)}, nil
}

func environ(e subject.Engine, variables []string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if _, given := e.Env[name]; !given && slices.ContainsFunc(variables, func(pattern string) bool {
			stem, any := strings.CutSuffix(pattern, "*")
			return name == pattern || any && strings.HasPrefix(name, stem)
		}) {
			env = append(env, v)
		}
	}
	for name, value := range e.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Leave closes the mount namespace.
func (p Program) Leave() error {
	if p.Mounts == nil {
		return nil
	}
	return p.Mounts.Close()
}

// Line returns a whole command line: the program, its arguments, and a verb with its arguments.
func (p Program) Line(verb ...string) []string {
	return slices.Concat([]string{p.Path}, p.Args, verb)
}

// Error is a command that failed.
type Error struct {
	Command string // pasteable
	Exit    int    // -1 if it was killed or did not start
	Output  string // standard error, cut to a few KiB
	Cause   error
}

func (e *Error) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("%s: %v", e.Command, e.Cause)
	}
	return fmt.Sprintf("%s: %v: %s", e.Command, e.Cause, e.Output)
}

func (e *Error) Unwrap() error { return e.Cause }

// Limits of output. The states of a hundred containers have about 1 MiB.
const (
	maxStdout = 32 << 20
	maxStderr = 4 << 10
)

// Run executes an untimed command and returns its standard output. The error is an *Error;
// output before it is returned too. The end of ctx kills the command's process group.
func (p Program) Run(ctx context.Context, verb ...string) ([]byte, error) {
	out, said := Kept{Most: maxStdout}, Kept{Most: maxStderr}
	err := p.Start(ctx, verb, &out, &said)
	if err == nil && out.dropped {
		err = fmt.Errorf("printed more than %d MiB", maxStdout>>20)
	}
	if err == nil {
		return out.kept, nil
	}
	e := &Error{Command: lane.Quote(p.Line(verb...)), Exit: -1, Output: strings.TrimSpace(said.String()), Cause: err}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch over := ctx.Err(); {
	case errors.Is(over, context.DeadlineExceeded):
		e.Cause = fmt.Errorf("no answer in time: %w", over)
	case over != nil: // interrupted: the result says nothing about the command
		e.Cause = over
	case exited:
		e.Exit = exit.ExitCode()
	}
	return out.kept, e
}

// Start runs a command to its end, in the mount namespace.
func (p Program) Start(ctx context.Context, verb []string, stdout, stderr io.Writer) error {
	if p.Mounts == nil {
		return p.run(ctx, verb, stdout, stderr)
	}
	return thread.InMounts(int(p.Mounts.Fd()), func() error { return p.run(ctx, verb, stdout, stderr) })
}

func (p Program) run(ctx context.Context, verb []string, stdout, stderr io.Writer) error {
	line := p.Line(verb...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = lane.Environment(p.Env)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd.Run()
}
