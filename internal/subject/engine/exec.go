package engine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
)

// Exec implements subject.Executor by the engine's exec command. The end of ctx ends that
// command; [Session.EndExec] then ends the process in the container, which survives it.
func (s *Session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	c, err := s.Inside(n, args)
	if err != nil {
		return subject.Executed{Exit: -1}, err
	}
	verb := s.o.Commands.Verb("exec", slices.Concat([]string{c.Name}, args)...)
	x := subject.Executed{Exit: -1, Command: lane.Quote(s.o.Program.Line(verb...))}
	out, said := Kept{Most: subject.MaxOutput}, Kept{Most: subject.MaxOutput}
	err = s.o.Program.Start(ctx, verb, &out, &said)
	x.Output, x.Stderr = out.String(), said.String()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), s.EndExec(c, nil))
	} else if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		if x.Exit, err = exit.ExitCode(), nil; s.o.Commands.Refused(x.Exit, x.Stderr) {
			err = fmt.Errorf("exit status %d: %s", x.Exit, strings.TrimSpace(x.Stderr))
			x.Exit = -1
		}
	} else if err == nil {
		x.Exit = 0
	}
	if err != nil {
		err = fmt.Errorf("target %s: %s: %w", s.o.Target, x.Command, err)
	}
	return x, err
}

// Inside returns the container on a lane for an exec, in its last known state.
func (s *Session) Inside(n int, args []string) (State, error) {
	if n < 0 || n >= len(s.lanes) || s.lanes[n].name == "" || len(args) == 0 {
		return State{}, fmt.Errorf("target %s: exec on lane %d: no container or no command", s.o.Target, n)
	}
	c := s.lanes[n].known
	c.Name = s.lanes[n].name
	return c, nil
}

const (
	// execEnd bounds the wait for the processes of an abandoned command to disappear. The
	// engine may not have started them yet.
	execEnd = 3 * time.Second
	// execQuiet is how long no process may be seen before they count as gone.
	execQuiet = 300 * time.Millisecond
)

// EndExec kills the processes of abandoned commands in a container, as [KillCommands] does.
// ended may be nil; it reports whether the engine considers the commands ended. The error
// means that no process was found: a command in a guest kernel continues until its container
// is removed.
func (s *Session) EndExec(c State, ended func() bool) error {
	killed := 0
	for began, last := time.Now(), time.Now(); time.Since(began) < execEnd; time.Sleep(20 * time.Millisecond) {
		if s.o.Guest {
			// A command's processes in a guest kernel cannot be killed from here.
		} else if n := KillCommands(c.ID, c.Pid); n > 0 {
			killed, last = killed+n, time.Now()
		}
		if time.Since(last) > execQuiet && (killed > 0 || ended != nil && ended()) {
			return nil
		}
	}
	if killed > 0 {
		return nil
	}
	return errors.New("its processes were not found on this machine: the command may run until the container is removed")
}
