package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stand is the fake environment of a run. It logs all calls.
type stand struct {
	t       *testing.T
	dir     string
	events  []string
	targets []subject.Target
	plan    storage.Options
	exec    executes
	drop    error
	free    int64
	stop    context.CancelFunc
	// looked is the device that was checked last.
	looked string
	// outside is the I/O of processes outside a guest between two readings, nil if there
	// are none.
	outside *record.Transfer
	// fio is the host's program, and ran lists the commands run on the host.
	fio string
	ran []string
}

// executes overrides the result of a command in a target's sandbox.
type executes func(ctx context.Context, target string, args []string) (subject.Executed, error, bool)

// bad overrides the result of a command in the target bad.
func bad(command string, e subject.Executed, err error) executes {
	return func(_ context.Context, name string, args []string) (subject.Executed, error, bool) {
		return e, err, name == "bad" && verb(args) == command
	}
}

// watch passes every command to a function and keeps the default results.
func watch(see func(target string, args []string)) executes {
	return func(_ context.Context, name string, args []string) (subject.Executed, error, bool) {
		see(name, args)
		return subject.Executed{}, nil, false
	}
}

func newStand(t *testing.T, names ...string) *stand {
	s := &stand{t: t, dir: t.TempDir(), plan: storage.Defaults(), free: 1 << 40}
	s.plan.Jobs = storage.DefaultJobs([]string{"write"}, []int64{4096}, storage.ToolDD, 40960, 0)
	s.plan.Volumes, s.plan.Rounds, s.plan.Ceiling, s.plan.Seed = []string{"rootfs"}, 1, 0, 7
	for _, name := range names {
		s.targets = append(s.targets, s.target(name))
	}
	return s
}

func (s *stand) note(format string, a ...any) { s.events = append(s.events, fmt.Sprintf(format, a...)) }

func (s *stand) target(name string) *fake.Target {
	return &fake.Target{Name: name,
		Script: func(op subject.Op, _, _ int) (int64, *record.Failure) {
			s.note("%s %s", name, op)
			return 1000, nil
		},
		OnExec: func(ctx context.Context, _ int, args []string) (subject.Executed, error) {
			s.note("%s %s", name, verb(args))
			if s.exec != nil {
				if e, err, ok := s.exec(ctx, name, args); ok {
					return e, err
				}
			}
			return s.usual(args), nil
		},
	}
}

// verb returns the action of a command.
func verb(args []string) string {
	if args[0] == "/probe" {
		return args[1]
	}
	if slices.Contains(args, "--version") {
		return "warm"
	}
	return filepath.Base(args[0])
}

// usual returns the result of a successful command.
func (s *stand) usual(args []string) subject.Executed {
	switch verb(args) {
	case "fs":
		out := ""
		for _, path := range args[2:] {
			out += fmt.Sprintf("tare-fs/1 ef53 %d %d %s\n", s.free, s.free, path)
		}
		return subject.Executed{Output: out}
	case "fill":
		return subject.Executed{Output: fmt.Sprintf("tare-fill/1 %d %s 1000\n", len(args)-3, args[2])}
	case "evict":
		return subject.Executed{Output: fmt.Sprintf("tare-evict/1 %d\n", len(args)-2)}
	case "direct":
		return subject.Executed{Output: "tare-direct/1 0\n"}
	case "warm":
		return subject.Executed{Output: "dd 9.1\n"}
	case "fio":
		return subject.Executed{Exit: 1}
	case "dd":
		return subject.Executed{Stderr: "10+0 records in\n10+0 records out\n40960 bytes (41 kB, 40 KiB) copied, 2 s, 20.5 kB/s\n", CPU: 5}
	}
	s.t.Errorf("unexpected command %v", args)
	return subject.Executed{Exit: 127}
}

// Begin and the other methods implement storage.Meter.
func (s *stand) Begin(context.Context, []subject.Sandbox, []int) *snapshot.Edge {
	s.note("begin")
	return &snapshot.Edge{Reading: record.Reading{Time: 1, Host: record.Host{Total: 1}}}
}

func (s *stand) End(context.Context, []subject.Sandbox, []int) *snapshot.Edge {
	s.note("end")
	return &snapshot.Edge{Reading: record.Reading{Time: 2e9, Host: record.Host{Total: 1}}}
}

func (s *stand) Seen(_, _ *snapshot.Edge, device string) record.Observed {
	s.looked = device
	return record.Observed{Took: 2e9, Disks: record.DeviceUse{Name: "sda", WriteBytes: 40960, WriteIOs: 10}, Outside: s.outside, CPU: []record.RoleTime{}}
}

func (s *stand) Rest(context.Context, string, time.Duration) bool { s.note("rest"); return true }
func (s *stand) Drop(context.Context) error                       { s.note("drop"); return s.drop }
func (s *stand) Flush(*snapshot.Edge, string) int64               { s.note("flush"); return 0 }

// run performs the plan.
func (s *stand) run() *record.Record {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.stop = cancel
	rec, _, err := storagerun.Run(ctx, storagerun.Options{
		Options: run.Options{RunID: "run1", Dirs: func(name string) (string, string, error) {
			dir := filepath.Join(s.dir, name)
			return dir, dir, os.MkdirAll(dir, 0o700)
		}},
		Plan: s.plan, Targets: s.targets, Meter: s, Programs: map[string]string{storage.ToolDD: "/usr/bin/dd", storage.ToolFio: "/usr/bin/fio"}, Fio: s.fio,
		Run: func(_ context.Context, args []string) (subject.Executed, error) {
			s.note("host %s", verb(args))
			s.ran = append(s.ran, strings.Join(args, " "))
			return s.usual(args), nil
		},
		Prepare: func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
			s.note("prepare %s", v.Name)
			if v.Kind == record.VolumeNFS {
				return nil, errors.New("this kernel has no NFS client")
			}
			return volume.Prepare(ctx, v, volume.Asked{RunID: "run1", Dir: filepath.Join(s.dir, "v-"+v.Kind), Bytes: bytes, Destroys: s.plan.Destroys})
		},
	})
	must.OK(s.t, err)
	return rec
}

func (s *stand) log() string { return strings.Join(s.events, ", ") }

func codes(rec *record.Record) []string {
	var all []string
	for _, f := range rec.Findings {
		all = append(all, f.Level+" "+f.Code)
	}
	return all
}
