package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

func run(ctx context.Context, t *testing.T, timeout time.Duration, args ...string) (*Session, record.Sample) {
	t.Helper()
	target1, err := New("", args)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := target1.Open(ctx, target.Env{Timeout: timeout, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Session)
	armed, err := s.Arm(ctx, target.Run, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	began, samples, err := armed.Release(ctx)
	if err != nil || len(samples) != 1 || began != samples[0].Start {
		t.Fatalf("%v: %d, %+v", err, began, samples)
	}
	return s, samples[0]
}

func TestACommandIsTimedFromTheCallToItsExit(t *testing.T) {
	_, s := run(t.Context(), t, time.Minute, "sleep", "0.2")
	if s.Failure != nil || s.Start >= s.Spawned || s.Spawned >= s.Returned {
		t.Fatalf("%+v", s)
	}
	if took := time.Duration(s.Returned - s.Start); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestACommandIsKnownByItsPid(t *testing.T) {
	s, _ := run(t.Context(), t, time.Minute, "sh", "-c", "echo $$")
	if got := strings.TrimSpace(string(s.said)); got != strconv.Itoa(s.Pid()) {
		t.Errorf("it is %s, and said to be %d", got, s.Pid())
	}
}

func TestACommandThatFailsSaysWhy(t *testing.T) {
	for _, test := range []struct {
		claim, script, kind string
		exit                int
		output              string
	}{
		{"its exit code and its words", "echo no such image >&2; exit 125", record.FailExit, 125, "no such image"},
		{"its signal", "kill -9 $$", record.FailExit, 137, ""},
		{"its time-out", "trap '' TERM; echo begun; sleep 60 & wait; wait", record.FailTimeout, 0, "begun"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			_, s := run(t.Context(), t, time.Second, "sh", "-c", test.script)
			f := s.Failure
			if f == nil || f.Kind != test.kind || f.Exit != test.exit || !strings.Contains(f.Output, test.output) || !strings.HasPrefix(f.Command, "sh -c ") {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestACommandEndsWithTheRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, s := run(ctx, t, time.Minute, "sleep", "60")
	if s.Failure == nil || s.Failure.Kind != record.FailInterrupted || time.Since(began) > 10*time.Second {
		t.Errorf("%+v after %v", s.Failure, time.Since(began))
	}
}

func TestWhatACommandLeavesRunningDoesNotHoldItsEnd(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "alive")
	began := time.Now()
	_, s := run(t.Context(), t, time.Minute, "sh", "-c", "(sleep 1; : > "+marker+") & echo done")
	if s.Failure != nil || time.Duration(s.Returned-s.Start) > 900*time.Millisecond || time.Since(began) > 900*time.Millisecond {
		t.Fatalf("%+v after %v", s, time.Since(began))
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(marker); err == nil {
			return
		}
	}
	t.Error("it was not left alone")
}

func TestTheContainersThatACommandPrintsAreKnown(t *testing.T) {
	id := strings.Repeat("0a", 32)
	s, _ := run(t.Context(), t, time.Minute, "printf", `%s\nnot %s\n%s\n`, id, id, id)
	if got := s.Containers(); len(got) != 1 || got[0] != id {
		t.Errorf("got %v", got)
	}
}

func TestACommandThatSaysTooMuchIsReadToItsEnd(t *testing.T) {
	s, sample := run(t.Context(), t, time.Minute, "sh", "-c", "head -c 10000000 /dev/zero")
	if sample.Failure != nil || len(s.said) != mostSaid {
		t.Errorf("%+v, kept %d", sample.Failure, len(s.said))
	}
}

func TestACommandThatIsNotThereIsToldAtOnce(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"no-such-command-here"}, {"/nowhere/at/all"}} {
		if _, err := New("", args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	c, err := New("", []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := c.Open(t.Context(), target.Env{})
	if _, err := s.Arm(t.Context(), target.Stop, []int{0}); !errors.Is(err, target.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
