package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
)

func script(t *testing.T, body string) Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "engine")
	must.OK(t, os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755))
	return Program{Path: file, Args: []string{"--own"}, Env: []string{"A=b c"}}
}

func TestCommandRunsAsWritten(t *testing.T) {
	t.Setenv("SECRET", "x")
	out, err := script(t, `echo "$A|$SECRET|$1|$2|$3"`).Run(t.Context(), "verb", "two words; *")
	if err != nil || string(out) != "b c||--own|verb|two words; *\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestFailedCommandHasCommandAndOutput(t *testing.T) {
	for _, c := range []struct {
		name, body, output string
		exit               int
	}{
		{"exit status", "echo out; echo why >&2; exit 3", "why", 3},
		{"signal", "kill -9 $$", "", -1},
		{"long error output", "yes why | head -c 100000 >&2; exit 1", "why", 1},
	} {
		p := script(t, c.body)
		_, err := p.Run(t.Context(), "verb", "a b")
		if e, ok := errors.AsType[*Error](err); !ok || e.Exit != c.exit || !strings.HasPrefix(e.Output, c.output) || len(e.Output) > maxStderr || e.Command != p.Path+" --own verb 'a b'" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestHangingCommandEndsWithItsGroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := script(t, "sleep 60 & sleep 60").Run(ctx, "verb")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) >= time.Minute {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestInterruptIsNotATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := script(t, "sleep 60").Run(ctx, "verb"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
}

func TestEngineIsFoundWithItsEnvironment(t *testing.T) {
	p := script(t, "exit 0")
	t.Setenv("ENGINE_HOST", "own")
	t.Setenv("ENGINE_CONF", "own")
	t.Setenv("OTHER", "own")
	got, err := Find(subject.Engine{Command: p.Path, Args: []string{"-x"}, Env: map[string]string{"ENGINE_CONF": "given", "Z": "1"}}, "nothing", "ENGINE_*")
	if err != nil || got.Path != p.Path || !slices.Equal(got.Args, []string{"-x"}) || !slices.Equal(got.Env, []string{"ENGINE_CONF=given", "ENGINE_HOST=own", "Z=1"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Find(subject.Engine{}, "no-such-engine"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
