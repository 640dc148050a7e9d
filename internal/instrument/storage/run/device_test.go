package run_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// deviceStand returns a stand with an overwritable block device of 16 MiB.
func deviceStand(t *testing.T, names ...string) (s *stand, path string) {
	t.Helper()
	path, _ = loopdev.New(t, 16<<20)
	s = newStand(t, names...)
	s.plan.Volumes, s.plan.Destroys = []string{"device=" + path}, []string{path}
	return s, path
}

func TestDeviceInUseIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		verb  string // the command during which the device comes into use
		round int    // in which execution of verb, from 1
		jobs  int    // expected number of jobs run
	}{
		"during a job, before the layout of the next one": {"dd", 2, 2},
		"between the layout and the job":                  {"evict", 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := deviceStand(t, "a")
			s.plan.Rounds = 3
			s.plan.Jobs = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0)
			ran := map[string]int{}
			s.exec = watch(func(_ string, args []string) {
				v := verb(args)
				if ran[v]++; v == c.verb && ran[v] == c.round {
					loopdev.On(t, path)
				}
			})
			rec := s.run()
			must.That(t, len(rec.Cells) == 3 && rec.Cells[1].Reported != nil && ran["dd"] == c.jobs,
				"%d jobs ran, %d cells: %+v", ran["dd"], len(rec.Cells), rec.Cells)
			f := rec.Cells[2].Failure
			check.That(t, f != nil && f.Kind == record.FailState && strings.Contains(f.Detail, "nothing was written: "+path+" is in use"), "got %+v", f)
		})
	}
}

func TestJobFileReadsDataWrittenByTheProbe(t *testing.T) {
	s, path := deviceStand(t, "a")
	s.plan.Jobs = []storage.Job{{Name: "file", Tool: storage.ToolFio, Options: []storage.Section{
		{Name: "one", Options: []storage.FioOption{{Name: "rw", Value: "read"}, {Name: "size", Value: "4m"}}},
		{Name: "other", Options: []storage.FioOption{{Name: "rw", Value: "read"}, {Name: "size", Value: "1m"}, {Name: "offset", Value: "7m"}}},
	}}}
	rec := s.run()
	want := "/probe fill 8388608 " + path
	check.That(t, slices.Contains(s.ran, want), "command %q did not run, got %q", want, s.ran)
	l := rec.Cells[0].Layout
	check.That(t, l != nil && l.Bytes == 8<<20, "laid out %+v", l)
}

func TestDirectReadIsTriedOnTheDevice(t *testing.T) {
	s, _ := deviceStand(t, "a")
	var tried []string
	s.exec = watch(func(_ string, args []string) {
		if verb(args) == "direct" {
			tried = args
		}
	})
	rec := s.run()
	check.That(t, len(tried) == 3 && tried[2] == subject.DevicePath && !strings.Contains(s.log(), "a fill"), "tried %q in %s", tried, s.log())
	check.That(t, rec.Places[0].Direct == record.DirectTaken, "place %+v", rec.Places[0])
}

func TestDirectReadIsTriedAgainAfterAFailedJob(t *testing.T) {
	s := newStand(t, "a", "b")
	s.plan.Jobs, s.plan.Rounds = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0), 2
	fills := 0
	s.exec = func(_ context.Context, name string, args []string) (subject.Executed, error, bool) {
		if verb(args) != "fill" || name != "a" && name != "b" {
			return subject.Executed{}, nil, false
		}
		if name == "a" {
			fills++
		}
		fails := name == "b" || fills == 1
		return subject.Executed{Exit: 1, Output: "tare-fill/1 error 28 /data/x\n"}, nil, fails
	}
	rec := s.run()
	direct := map[string]string{}
	for _, p := range rec.Places {
		_, twice := direct[p.Target]
		check.That(t, !twice, "%s has two places", p.Target)
		direct[p.Target] = p.Direct
	}
	if len(direct) != 2 || direct["a"] != record.DirectTaken || direct["b"] != "" {
		t.Errorf("places %+v", rec.Places)
	}
}

func TestFullTmpfsIsReportedAtItsWholeSize(t *testing.T) {
	s := newStand(t, "a")
	s.plan.Volumes, s.free = []string{"tmpfs"}, 40959
	rec := s.run()
	f := rec.Cells[0].Failure
	check.That(t, f != nil && strings.Contains(f.Detail, "free on the tmpfs") && !strings.Contains(f.Detail, "90 %"), "got %+v", f)
}

func TestCeilingFileHasAMinimumSize(t *testing.T) {
	s := newStand(t, "a")
	s.fio, s.plan.Ceiling = "/usr/bin/fio", time.Second
	s.run()
	check.That(t, slices.ContainsFunc(s.ran, func(line string) bool { return strings.HasPrefix(line, "/probe fill 67108864 ") }),
		"ran %q", s.ran)
	s.ran, s.free = nil, 70<<20
	rec := s.run()
	check.That(t, !slices.ContainsFunc(s.ran, func(line string) bool { return strings.HasPrefix(line, "/probe fill") }),
		"ran %q without enough space", s.ran)
	c := rec.Ceilings
	check.That(t, len(c) == 2 && c[0].Failure != nil && strings.Contains(c[0].Failure.Detail, "64 MiB does not fit in 90 %"), "ceilings %+v", c)
}

func TestTooSmallDeviceHasNoCeiling(t *testing.T) {
	s, _ := deviceStand(t, "a")
	s.fio, s.plan.Ceiling = "/usr/bin/fio", time.Second
	rec := s.run()
	c := rec.Ceilings
	check.That(t, len(c) == 2 && c[0].Failure != nil && strings.Contains(c[0].Failure.Detail, "do not fit in the 16 MiB of the device"), "ceilings %+v", c)
}

// ofKind is a target that reports the given kind.
type ofKind struct {
	*fake.Target
	kind string
}

func (k ofKind) Info() record.Target {
	i := k.Target.Info()
	i.Kind = k.kind
	return i
}

func TestRootfsInTheRunFolderIsOnItsDevice(t *testing.T) {
	for kind, own := range map[string]bool{"host": true, "floor": true, "oci": true, "docker": false, "containerd": false} {
		t.Run(kind, func(t *testing.T) {
			s := newStand(t)
			device, _, err := disk.Under(s.dir)
			must.That(t, err == nil && device != "", "the test folder is not on a device (%v): set TMPDIR to a folder on a disk", err)
			s.targets = []subject.Target{ofKind{s.target("a"), kind}}
			want := ""
			if own {
				want = device
			}
			rec := s.run()
			check.That(t, len(rec.Places) == 1 && rec.Places[0].Device == want && s.looked == want, "places %+v, looked at %q, want %q", rec.Places, s.looked, want)
		})
	}
}

func TestHostCommandIsTheOneThatRan(t *testing.T) {
	s := newStand(t)
	s.exec = func(_ context.Context, name string, args []string) (subject.Executed, error, bool) {
		e := s.usual(args)
		e.Command = "/usr/bin/dd of=/somewhere/data/test"
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

func TestUnexecutableToolFailsBeforeTheJob(t *testing.T) {
	for _, exit := range []int{126, 127, 1} {
		s := newStand(t, "a")
		s.exec = func(_ context.Context, _ string, args []string) (subject.Executed, error, bool) {
			return subject.Executed{Exit: exit, Stderr: "no loader"}, nil, verb(args) == "warm"
		}
		c := s.run().Cells[0]
		failed := c.Failure != nil && c.Failure.Kind == record.FailExit && c.Failure.Exit == exit && c.Failure.Output == "no loader"
		check.That(t, failed == (exit != 1), "exit status %d: %+v", exit, c.Failure)
	}
}
