package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
	"github.com/tare-bench/tare/record"
)

// ofKind is a target that says of itself which kind it is.
type ofKind struct {
	*fake.Target
	kind string
}

func (k ofKind) Info() record.Target {
	i := k.Target.Info()
	i.Kind = k.kind
	return i
}

func TestARootFileSystemInTheRunsOwnFolderLiesOnItsDevice(t *testing.T) {
	for kind, own := range map[string]bool{"host": true, "floor": true, "oci": true, "docker": false, "containerd": false} {
		t.Run(kind, func(t *testing.T) {
			s := newStand(t)
			device, _, err := disk.Under(s.dir)
			if err != nil || device == "" {
				t.Fatalf("the tests' folder lies on no device (%v): give them a TMPDIR on a disk", err)
			}
			s.targets = []subject.Target{ofKind{s.target("a"), kind}}
			want := ""
			if own {
				want = device
			}
			if rec := s.run(); len(rec.Places) != 1 || rec.Places[0].Device != want || s.looked != want {
				t.Errorf("places %+v, looked at %q, want %q", rec.Places, s.looked, want)
			}
		})
	}
}

func TestTheCommandOfTheHostIsTheOneThatWasRun(t *testing.T) {
	s := newStand(t)
	s.exec = func(_ context.Context, name string, args []string) (subject.Executed, error, bool) {
		e := s.usual(args)
		e.Command = "//usr/bin/dd of=/somewhere/data/test"
		return e, nil, true
	}
	s.targets = []subject.Target{ofKind{s.target("host"), "host"}, ofKind{s.target("runc"), "oci"}}
	for _, c := range s.run().Cells {
		switch {
		case c.Target == "host" && c.Command != "/usr/bin/dd of=/somewhere/data/test":
			t.Errorf("host: %s", c.Command)
		case c.Target == "runc" && !strings.HasPrefix(c.Command, "/usr/bin/dd if=/dev/zero of=/data/"):
			t.Errorf("runc: %s", c.Command)
		}
	}
}

func TestAToolThatCannotBeExecutedFailsBeforeTheJob(t *testing.T) {
	for _, exit := range []int{126, 127, 1} {
		s := newStand(t, "a")
		s.exec = func(_ context.Context, _ string, args []string) (subject.Executed, error, bool) {
			return subject.Executed{Exit: exit, Stderr: "no loader"}, nil, verb(args) == "warm"
		}
		c := s.run().Cells[0]
		if failed := c.Failure != nil && c.Failure.Kind == record.FailExit && c.Failure.Exit == exit && c.Failure.Output == "no loader"; failed != (exit != 1) {
			t.Errorf("exit status %d: %+v", exit, c.Failure)
		}
	}
}
