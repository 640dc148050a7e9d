package command

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func run(ctx context.Context, t *testing.T, timeout time.Duration, args ...string) (*Session, record.Sample) {
	t.Helper()
	target1 := must.Get(New("", args))(t)
	opened := must.Get(target1.Open(ctx, subject.Env{Timeout: timeout, Lanes: 1}))(t)
	s := opened.(*Session)
	armed := must.Get(s.Prepare(ctx, subject.Run, []int{0}))(t)
	began, samples, err := armed.Start(ctx)
	must.That(t, err == nil && len(samples) == 1 && began == samples[0].Start, "%v: %d, %+v", err, began, samples)
	return s, samples[0]
}

func TestCommandIsTimedFromTheCallToItsExit(t *testing.T) {
	before := machine.Now()
	_, s := run(t.Context(), t, time.Minute, "sleep", "0.2")
	after := machine.Now()
	must.That(t, s.Failure == nil && s.Start < s.Spawned && s.Spawned < s.Returned, "%+v", s)
	if took := time.Duration(s.Returned - s.Start); took < 200*time.Millisecond || s.Start < before || s.Returned > after {
		t.Errorf("took %v; stamps %d and %d, want them between %d and %d", took, s.Start, s.Returned, before, after)
	}
}

func TestPidIsThatOfTheCommand(t *testing.T) {
	s, _ := run(t.Context(), t, time.Minute, "sh", "-c", "echo $$")
	check.Equal(t, "process id", strings.TrimSpace(s.said), strconv.Itoa(s.Pid()))
}

func TestFailedCommandHasItsReason(t *testing.T) {
	for _, test := range []struct {
		claim, script, kind string
		exit                int
		output              string
		timeout             time.Duration
	}{
		{"exit code and output", "echo no such image >&2; exit 125", record.FailExit, 125, "no such image", time.Minute},
		{"signal", "kill -9 $$", record.FailExit, 137, "", time.Minute},
		{"timeout", "trap '' TERM; echo begun; sleep 60 & wait; wait", record.FailTimeout, 0, "begun", 6 * time.Second},
	} {
		t.Run(test.claim, func(t *testing.T) {
			_, s := run(t.Context(), t, test.timeout, "sh", "-c", test.script)
			f := s.Failure
			check.That(t, f != nil && f.Kind == test.kind && f.Exit == test.exit && strings.Contains(f.Output, test.output) &&
				strings.HasPrefix(f.Command, "sh -c "), "got %+v", f)
		})
	}
}

func TestCommandEndsWithTheRun(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = appears(marker)
		cancel()
	}()
	began := time.Now()
	_, s := run(ctx, t, 10*time.Minute, "sh", "-c", ": > "+marker+"; exec sleep 300")
	check.That(t, s.Failure != nil && s.Failure.Kind == record.FailInterrupted && time.Since(began) <= 4*time.Minute,
		"%+v after %v", s.Failure, time.Since(began))
}

func TestEndedCommandSucceedsWithOpenOutput(t *testing.T) {
	dir := t.TempDir()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	go func() {
		_ = appears(filepath.Join(dir, "pid"))
		b, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		for pid > 1 && unix.Kill(pid, 0) == nil { // until it is reaped
			time.Sleep(time.Millisecond)
		}
		over()
	}()
	_, s := run(ctx, t, time.Minute, "sh", "-c", "cd "+dir+"; echo $$ > new; mv new pid; sleep 1 & exit 0")
	check.That(t, s.Failure == nil, "%+v", s.Failure)
}

func TestBackgroundProcessDoesNotDelayTheEnd(t *testing.T) {
	dir := t.TempDir()
	marker, gone := filepath.Join(dir, "alive"), filepath.Join(dir, "gone")
	_, s := run(t.Context(), t, time.Minute, "sh", "-c", "(while [ ! -e "+gone+" ]; do sleep 0.02; done; : > "+marker+") & echo done")
	must.That(t, s.Failure == nil, "%+v", s) // the command has ended
	must.OK(t, os.WriteFile(gone, nil, 0o600))
	check.Error(t, appears(marker), "")
}

// appears waits up to a minute for a file.
func appears(path string) (err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err = os.Stat(path); err == nil {
			return nil
		}
	}
	return err
}

// A background process may write while tare reads, and after tare has stopped reading.
func TestBackgroundProcessMayWrite(t *testing.T) {
	for claim, last := range map[string]string{"while tare reads": "", "after tare has closed the output": "closed"} {
		t.Run(claim, func(t *testing.T) {
			dir := t.TempDir()
			marker, gone := filepath.Join(dir, "alive"), filepath.Join(dir, "gone")
			// A pipe holds less than the output. echo gets an error and continues. yes would
			// get SIGPIPE or block.
			script := `(while [ ! -e ` + gone + ` ]; do sleep 0.02; done
				i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done 2>/dev/null
				: > ` + marker + `) & echo begun`
			s, sample := run(t.Context(), t, time.Minute, "sh", "-c", script)
			must.That(t, sample.Failure == nil && strings.Contains(s.said, "begun") && len(s.outputs) == 1,
				"%+v said %q, %d outputs", sample.Failure, s.said, len(s.outputs))
			if last != "" {
				err := s.Close(t.Context())
				must.That(t, err == nil && len(s.outputs) == 0, "%v", err)
			}
			must.OK(t, os.WriteFile(gone, nil, 0o600))
			must.OK(t, appears(marker))
			for i := 0; len(s.outputs) == 1 && !s.outputs[0].over(); i++ {
				if time.Sleep(10 * time.Millisecond); i > 6000 {
					t.Fatal("the output of an ended process is still open")
				}
			}
			must.OK(t, s.Close(t.Context()))
		})
	}
}

// On a timeout the whole process group gets SIGTERM, and SIGKILL after a grace period. This
// includes background processes.
func TestTimeoutEndsTheProcessGroup(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "cleaned")
	var s *Session
	var sample record.Sample
	var said []string
	// If some processes had not started at the timeout, repeat with a longer one.
	for timeout := 2 * time.Second; timeout < time.Minute; timeout *= 2 {
		s, sample = run(t.Context(), t, timeout, "sh", "-c",
			`(trap '' TERM; exec sh -c 'echo $$; exec sleep 370.5') & (trap 'sleep 0.3; : > `+marker+`; exit' TERM; echo trapped; while :; do sleep 0.1; done) & exec sleep 380`)
		if said = regexp.MustCompile(`(?m)^[0-9]+$`).FindAllString(s.said, -1); len(said) == 1 && strings.Contains(s.said, "trapped\n") {
			break
		}
	}
	must.That(t, sample.Failure != nil && sample.Failure.Kind == record.FailTimeout, "%+v", sample)
	took := time.Duration(sample.Returned - sample.Start)
	check.That(t, took <= 3*time.Minute, "the command itself ended after %v", took) // long before the command would exit
	_, err := os.Stat(marker)
	check.That(t, err == nil, "the process group had no grace period: %v", err)
	pid := must.Get(strconv.Atoi(strings.Join(said, "")))(t)
	must.Eventually(t, func() string {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") {
			return ""
		}
		return "it is still there: " + string(b)
	})
}

func TestContainersAreReadFromTheOutput(t *testing.T) {
	id := strings.Repeat("0a", 32)
	s, _ := run(t.Context(), t, time.Minute, "printf", `%s\nnot %s\n%s\n`, id, id, id)
	got := s.Containers()
	check.That(t, len(got) == 1 && got[0] == id, "got %v", got)
}

func TestLongOutputIsReadToItsEnd(t *testing.T) {
	s, sample := run(t.Context(), t, time.Minute, "sh", "-c", "head -c 10000000 /dev/zero")
	check.That(t, sample.Failure == nil && len(s.said) == maxSaid, "%+v, kept %d", sample.Failure, len(s.said))
}

func TestMissingCommandIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"no-such-command-here"}, {"/nowhere/at/all"}} {
		_, err := New("", args)
		check.That(t, err != nil, "%q was accepted", args)
	}
	c := must.Get(New("", []string{"true"}))(t)
	s, _ := c.Open(t.Context(), subject.Env{})
	_, err := s.Prepare(t.Context(), subject.Stop, []int{0})
	check.Is(t, err, subject.ErrUnsupported)
}
