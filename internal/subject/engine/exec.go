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

// Exec implements subject.Executor by the engine's own command. ctx's end ends
// that command, and then [Session.EndExec] the one in the container, which does
// not end with it.
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

// Inside is the container on a lane in which a command can be run, as it was
// last seen.
func (s *Session) Inside(n int, args []string) (State, error) {
	if n < 0 || n >= len(s.lanes) || s.lanes[n].name == "" || len(args) == 0 {
		return State{}, fmt.Errorf("target %s: exec on lane %d: there is no container or no command", s.o.Target, n)
	}
	c := s.lanes[n].known
	c.Name = s.lanes[n].name
	return c, nil
}

const (
	// ending is how long it may take until the processes of a command that
	// was given up are gone: the engine may be about to start it.
	ending = 3 * time.Second
	// calm is how long none may be seen before it is believed.
	calm = 300 * time.Millisecond
)

// EndExec kills the processes on this machine of commands that nobody waits for any more
// in a container, as [KillCommands]. ended, which may be nil, reports whether the engine
// says that they are over. The error says that none was seen: a command under a kernel of
// its own goes on as long as its container.
func (s *Session) EndExec(c State, ended func() bool) error {
	killed := 0
	for began, last := time.Now(), time.Now(); time.Since(began) < ending; time.Sleep(20 * time.Millisecond) {
		if s.o.Guest {
			// its processes are not this kernel's
		} else if n := KillCommands(c.ID, c.Pid); n > 0 {
			killed, last = killed+n, time.Now()
		}
		if time.Since(last) > calm && (killed > 0 || ended != nil && ended()) {
			return nil
		}
	}
	if killed > 0 {
		return nil
	}
	return errors.New("none of its processes could be ended from outside: it may go on in the container until that is removed")
}
