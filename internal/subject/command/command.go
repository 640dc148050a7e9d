// Package command weighs a command that starts something: the time from the call to its exit.
//
// tare leaves alone whatever the user's command leaves behind, such as a container in the
// background. It kills only the process group of a command that timed out.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// Target is a command.
type Target struct {
	name string
	path string
	args []string
}

// New returns a command as a target. args[0] is looked up on PATH.
func New(name string, args []string) (*Target, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("no command: give it with its arguments, such as docker run --rm busybox true")
	}
	path, err := exec.LookPath(args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", lane.Quote(args[:1]), err)
	}
	if name == "" {
		name = filepath.Base(args[0])
	}
	return &Target{name, path, args}, nil
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	return record.Target{
		Name: t.name, Kind: "command", Clock: "host", Path: t.path,
		Operations: map[string]record.Operation{string(subject.Run): {
			Command: lane.Quote(t.args), Done: record.StampReturned, Means: "the command has exited with 0",
		}},
	}
}

// Open implements subject.Target.
func (t *Target) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	return &Session{target: t, timeout: env.Timeout}, nil
}

// Session runs the command.
type Session struct {
	target  *Target
	timeout time.Duration
	said    string
	pid     int
	outputs []*output // still open in processes that a run left behind
}

// Pid returns the process of the last run; 0 before the first, or if the command could not be
// executed.
func (s *Session) Pid() int { return s.pid }

// Discard implements subject.Session.
func (s *Session) Discard(context.Context, []int) error { return nil }

// Close implements subject.Session.
func (s *Session) Close(context.Context) error {
	for _, o := range s.outputs {
		o.close()
	}
	s.outputs = nil
	return nil
}

// Prepare implements subject.Session.
func (s *Session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if op != subject.Run || len(lanes) != 1 {
		return nil, fmt.Errorf("target %s: %s on %d lanes: %w: commands run one at a time", s.target.name, op, len(lanes), subject.ErrUnsupported)
	}
	return &start{s}, nil
}

var containerID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// Containers returns the ids of containers that the last run printed, one per line, as docker
// run -d does.
func (s *Session) Containers() (ids []string) {
	for line := range strings.Lines(s.said) {
		if id := strings.TrimSpace(line); containerID().MatchString(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// start is a prepared run.
type start struct{ *Session }

// Start implements subject.Batch.
func (s *start) Start(ctx context.Context) (int64, []record.Sample, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	sample, err := s.run(bounded)
	switch { // decided by the command's own end, since its output may arrive after the time-out
	case errors.Is(err, errEnded) && ctx.Err() != nil:
		sample.Failure = &record.Failure{Kind: record.FailInterrupted, Detail: "tare was interrupted"}
	case errors.Is(err, errEnded):
		sample.Failure = &record.Failure{Kind: record.FailTimeout, Detail: fmt.Sprintf("not done within %v; it was killed with its process group", s.timeout)}
	case err != nil:
		sample.Failure = &record.Failure{Kind: record.FailExec, Detail: err.Error()}
	}
	if f := sample.Failure; f != nil {
		f.Command, f.Output = lane.Quote(s.target.args), strings.TrimSpace(s.said)
	}
	return sample.Start, []record.Sample{sample}, nil
}

func (s *start) run(ctx context.Context) (sample record.Sample, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return sample, err
	}
	defer null.Close()
	out, in, err := listen()
	if err != nil {
		return sample, err
	}
	// The clock is read and the command forked on one thread, with nothing in between.
	runtime.LockOSThread()
	s.pid = 0
	sample.Start = machine.Now()
	p, err := os.StartProcess(s.target.path, s.target.args, &os.ProcAttr{
		Files: []*os.File{null, in, in}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	sample.Spawned = machine.Now()
	runtime.UnlockOSThread()
	if err == nil {
		s.pid = p.Pid
		var state *os.ProcessState
		state, sample.Returned, err = wait(ctx, p)
		judge(&sample, state)
	}
	letGo(in)
	s.said = out.head(200 * time.Millisecond)
	s.outputs = slices.DeleteFunc(append(s.outputs, out), (*output).over)
	return sample, err
}

func judge(sample *record.Sample, state *os.ProcessState) {
	if state == nil {
		return
	}
	sample.UserCPU, sample.SysCPU = state.UserTime().Nanoseconds(), state.SystemTime().Nanoseconds()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		sample.MaxRSS = usage.Maxrss << 10
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status != 0 {
		sample.Failure = batch.Exited(unix.WaitStatus(status))
	}
}
