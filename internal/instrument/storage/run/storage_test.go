package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestJobRunsInItsOwnSandboxBetweenTwoReadings(t *testing.T) {
	s := newStand(t, "a")
	s.plan.Jobs = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0)
	s.plan.Rounds = 2
	rec := s.run()
	first := "a run, a fs, a fs, a fill, a direct, a evict, drop, a warm, rest, begin, a dd, end"
	later := "a run, a fs, a fill, a evict, drop, a warm, rest, begin, a dd, end"
	check.Equal(t, "steps", s.log(), "prepare rootfs, "+first+", "+later)
	must.That(t, len(rec.Cells) == 2 && rec.End.Status == "done", "%d cells, end %+v", len(rec.Cells), rec.End)
	c := rec.Cells[1]
	check.That(t, c.Round == 1 && c.Target == "a" && c.Volume == "rootfs" && c.Cache == "direct" && c.Job == "read 4k" &&
		c.Version == "dd 9.1" && c.Dropped == "node" && c.Quiet, "got %+v", c)
	check.That(t, c.Reported != nil && c.Reported.Read.Bytes == 40960 && c.Reported.Read.Bandwidth == 20480 && c.Observed != nil &&
		c.Layout != nil && c.Layout.Bytes == 40960, "reported %+v, observed %+v, layout %+v", c.Reported, c.Observed, c.Layout)
	check.That(t, len(rec.Places) == 1 && rec.Places[0].Direct == record.DirectTaken && len(rec.Places[0].Mounts) == 2,
		"places %+v", rec.Places)
}

func TestWritesAreFlushedAfterTheReading(t *testing.T) {
	s := newStand(t, "a")
	s.run()
	check.That(t, strings.HasSuffix(s.log(), "begin, a dd, end, flush"), "steps: %s", s.log())
}

func TestLoadingTheToolIsMeasuredBeforeTheJob(t *testing.T) {
	s := newStand(t, "a")
	s.outside = &record.Transfer{Read: 36 << 20}
	rec := s.run()
	check.That(t, strings.HasSuffix(s.log(), "begin, a warm, begin, a dd, end, flush"), "steps: %s", s.log())
	l := rec.Cells[0].Observed.Loading
	check.That(t, l != nil && *l == *s.outside, "got %+v", l)
}

func TestTargetsShareTheFilesOfABindMount(t *testing.T) {
	s := newStand(t, "a", "b", "c")
	s.plan.Volumes = []string{"bind"}
	s.plan.Jobs = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0)
	s.plan.Rounds = 3
	rec := s.run()
	fills := strings.Count(s.log(), "fill")
	check.That(t, fills == 1 && strings.Contains(s.log(), "host fill"), "laid out files %d times: %s", fills, s.log())
	check.Equal(t, "cells", len(rec.Cells), 9)
}

func TestEveryRoundVisitsEachTargetOncePerJob(t *testing.T) {
	s := newStand(t, "a", "b", "c", "d")
	s.plan.Rounds = 6
	s.plan.Cache = []string{"direct", "buffered"}
	s.plan.Jobs = storage.DefaultJobs([]string{"read", "write"}, []int64{4096}, storage.ToolDD, 40960, 0)
	rec := s.run()
	type visit struct {
		round      int
		job, cache string
	}
	orders := map[visit][]string{}
	for i, c := range rec.Cells {
		v := visit{c.Round, c.Job, c.Cache}
		must.That(t, c.Order == len(orders[v]) && (i == 0 || c.Order == 0 || orders[v] != nil), "cell %d is out of order: %+v", i, c)
		orders[v] = append(orders[v], c.Target)
	}
	check.Equal(t, "visits", len(orders), 6*4)
	seen := map[string]bool{}
	for v, names := range orders {
		seen[strings.Join(names, "")] = true
		slices.Sort(names)
		check.That(t, strings.Join(names, "") == "abcd", "%+v: %v", v, names)
	}
	check.That(t, len(seen) >= 8, "only %d orders in 24 visits", len(seen))
}

func TestFailedJobHasNoFigures(t *testing.T) {
	for _, test := range []struct {
		name string
		exec executes
		free int64
		kind string
		says string
	}{
		{"full disk", bad("fill", subject.Executed{Exit: 1, Output: "tare-fill/1 error 28 /data/x\n"}, nil), 0, record.FailError, "no space left on the volume"},
		{"read-only volume", bad("fill", subject.Executed{Exit: 1, Output: "tare-fill/1 error 30 /data/x\n"}, nil), 0, record.FailError, "read-only"},
		{"not enough space", nil, 40960, record.FailError, "do not fit in 90 %"},
		{"tool exits with an error", bad("dd", subject.Executed{Exit: 1, Stderr: "dd: Invalid argument"}, nil), 0, record.FailExit, "exit status 1"},
		{"missing tool", bad("dd", subject.Executed{Exit: 127}, nil), 0, record.FailExit, "exit status 127"},
		{"tool without output", bad("dd", subject.Executed{}, nil), 0, record.FailWorkload, "could not be read"},
		{"tool killed at its time limit", bad("dd", subject.Executed{Exit: 137}, fmt.Errorf("exec: %w", context.DeadlineExceeded)), 0,
			record.FailTimeout, "--runtime-limit"},
		{"sandbox that cannot execute the tool", bad("dd", subject.Executed{}, errors.New("no such container")), 0, record.FailError, "no such container"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStand(t, "good", "bad")
			s.plan.Jobs = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0)
			if s.exec = test.exec; test.free > 0 {
				s.free = test.free
			}
			rec := s.run()
			must.That(t, len(rec.Cells) == 2, "%d cells", len(rec.Cells))
			for _, c := range rec.Cells {
				if c.Target == "good" && test.free == 0 {
					check.That(t, c.Failure == nil && c.Reported != nil, "the other target: %+v", c)
					continue
				}
				check.That(t, c.Failure != nil && c.Failure.Kind == test.kind && strings.Contains(c.Failure.Detail, test.says) && c.Reported == nil,
					"got %+v, want %s with %q", c.Failure, test.kind, test.says)
			}
			check.That(t, rec.End.Failures != 0, "the failure was not counted")
		})
	}
}

func TestMissingVolumeDoesNotAffectOthers(t *testing.T) {
	s := newStand(t, "a", "b")
	s.plan.Volumes = []string{"nfs=server:/path", "rootfs"}
	rec := s.run()
	check.Equal(t, "cells", len(rec.Cells), 2)
	absent := 0
	for _, p := range rec.Places {
		if p.Absent != "" && p.Volume == "nfs=server:/path" && strings.Contains(p.Absent, "no NFS client") {
			absent++
		}
	}
	if absent != 2 || !slices.Contains(codes(rec), "error "+finding.VolumeAbsent) {
		t.Errorf("places %+v, findings %v", rec.Places, codes(rec))
	}
	s.plan.Missing = terms.MissingSkip
	if rec = s.run(); !slices.Contains(codes(rec), "note "+finding.VolumeAbsent) {
		t.Errorf("findings %v with missing volumes allowed", codes(rec))
	}
}

func TestTargetWithoutVolumeIsSkipped(t *testing.T) {
	s := newStand(t, "a", "b")
	s.targets[1].(*fake.Target).OnOpen = func(env subject.Env) error {
		if env.Workload.Volume != "" {
			return fmt.Errorf("no folders here: %w", subject.ErrUnsupported)
		}
		return nil
	}
	s.plan.Volumes = []string{"bind", "rootfs"}
	rec := s.run()
	var got []string
	for _, c := range rec.Cells {
		got = append(got, c.Volume+" "+c.Target)
	}
	slices.Sort(got)
	check.That(t, strings.Join(got, ", ") == "bind a, rootfs a, rootfs b", "cells of %v", got)
	if !slices.ContainsFunc(rec.Places, func(p record.Place) bool { return p.Target == "b" && strings.Contains(p.Absent, "no folders") }) {
		t.Errorf("places %+v", rec.Places)
	}
}

func TestCacheDropFailureIsReportedOnce(t *testing.T) {
	s := newStand(t, "a", "b")
	s.drop = errors.New("permission denied")
	s.plan.Rounds = 3
	s.plan.Jobs = storage.DefaultJobs([]string{"read"}, []int64{4096}, storage.ToolDD, 40960, 0)
	rec := s.run()
	n := 0
	for _, c := range codes(rec) {
		if c == "warning "+finding.NotDropped {
			n++
		}
	}
	check.That(t, n == 1, "reported %d times: %v", n, codes(rec))
	c := rec.Cells[0]
	check.That(t, c.Dropped == "files", "dropped %q", c.Dropped)
}

func TestInterruptedRunKeepsItsCells(t *testing.T) {
	s := newStand(t, "a", "b")
	s.plan.Rounds = 10
	n := 0
	s.exec = func(ctx context.Context, _ string, args []string) (subject.Executed, error, bool) {
		if verb(args) != "dd" {
			return subject.Executed{}, nil, false
		}
		if n++; n == 4 {
			s.stop()
			<-ctx.Done()
			return subject.Executed{}, ctx.Err(), true
		}
		return subject.Executed{}, nil, false
	}
	rec := s.run()
	check.That(t, len(rec.Cells) == 3 && rec.End.Status == "interrupted", "%d cells, end %+v", len(rec.Cells), rec.End)
}
