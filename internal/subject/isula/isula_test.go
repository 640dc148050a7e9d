package isula

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func environment(t *testing.T, lanes int) subject.Env {
	t.Helper()
	env := enginetest.Environment(t, lanes)
	env.RunID = "abcdefgh"
	return env
}

func weigh(t *testing.T, e subject.Engine) *Target {
	t.Helper()
	tg := must.Get(New(t.Context(), "isula/runc", "runc", "", e))(t)
	return tg.(*Target)
}

func open(t *testing.T, e subject.Engine, env subject.Env) subject.Session {
	t.Helper()
	return enginetest.Open(t, weigh(t, e), env)
}

func performed(t *testing.T, s subject.Session, op subject.Op, n int) {
	t.Helper()
	for _, sample := range enginetest.Must(t, s, op, n) {
		if (op == subject.Start || op == subject.Run) && sample.First == 0 {
			t.Errorf("%s, lane %d: no stamp of the workload", op, sample.Lane)
		}
	}
}

func (f fake) left(t *testing.T) []string {
	t.Helper()
	files := must.Get(os.ReadDir(filepath.Join(f.dir, "containers")))(t)
	var out []string
	for _, file := range files {
		out = append(out, file.Name())
	}
	if _, err := os.Stat(filepath.Join(f.dir, "image")); err == nil {
		out = append(out, "image")
	}
	return out
}

func TestContainerLifecycleLeavesNothing(t *testing.T) {
	f, e := newFake(t)
	s := open(t, e, environment(t, 20))
	for _, op := range subject.ContainerOps {
		performed(t, s, op, 20)
	}
	must.OK(t, s.Close(t.Context()))
	if left := f.left(t); left != nil {
		t.Errorf("left: %q", left)
	}
}

func TestReportedResultsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name              string
		op                subject.Op
		verb, answer      string
		dies              bool
		kind, detail, out string
		exit              int
	}{
		{"an existing name", subject.Create, "create", "create-duplicate", false, record.FailExit, "exit status 1", "Conflict", 1},
		{"an unknown runtime", subject.Create, "create", "create-badruntime", false, record.FailExit, "exit status 1", "Execute operation failed", 1},
		{"an unknown flag", subject.Create, "create", "badflag", false, record.FailExit, "exit status 125", "Unknown flag", 125},
		{"no daemon", subject.Create, "create", "no-daemon-create", false, record.FailExit, "exit status 1", "Can not connect", 1},
		{"create without effect", subject.Create, "create", "create", false, record.FailState, "does not know the container", "", 0},
		{"start of a missing container", subject.Start, "start", "start-missing", false, record.FailExit, "exit status 1", "No such container", 1},
		{"start without effect", subject.Start, "start", "start-again", false, record.FailState, "says the container is inited, not running", "", 0},
		{"workload ended immediately", subject.Start, "", "", true, record.FailState, "says the container is exited, not running", "tare-probe/1", 137},
		{"stop without effect", subject.Stop, "stop", "stop-again", false, record.FailState, "says the container is running, not exited", "", 0},
		{"rm without effect", subject.Remove, "rm", "rm", false, record.FailState, "still knows the container", "", 0},
		{"no daemon during the check", subject.Start, "inspect", "no-daemon-create", false, record.FailState, "could not be read", "Can not connect", 1},
		{"failing run", subject.Run, "run", "create-badruntime", false, record.FailExit, "exit status 1", "Execute operation failed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, e := newFake(t)
			s := open(t, e, environment(t, 2))
			for _, op := range []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove} {
				if op == c.op || c.op == subject.Run {
					break
				}
				performed(t, s, op, 2)
			}
			if c.verb != "" {
				f.answers(t, c.verb, c.answer)
			}
			if c.dies {
				f.is(t, "dies", "")
			}
			for _, sample := range enginetest.Do(t, s, c.op, 2) {
				got := sample.Failure
				if got == nil {
					t.Fatal("no failure")
				}
				if got.Kind != c.kind || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Output, c.out) || got.Exit != c.exit || !strings.Contains(got.Command, "isula") {
					t.Errorf("%+v", *got)
				}
			}
			if c.verb != "" {
				f.answers(t, c.verb, "")
			}
			must.OK(t, s.Discard(t.Context(), []int{0, 1}))
			must.OK(t, s.Close(t.Context()))
			if left := f.left(t); left != nil {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestHangingCommandTimesOutAndIsCleanedUp(t *testing.T) {
	f, e := newFake(t)
	env := environment(t, 1)
	env.Timeout = 500 * time.Millisecond
	s := open(t, e, env)
	f.answers(t, "create", "hang")
	if got := enginetest.Do(t, s, subject.Create, 1)[0].Failure; got == nil || got.Kind != record.FailTimeout {
		t.Errorf("%+v", got)
	}
	f.answers(t, "create", "")
	must.OK(t, s.Close(t.Context()))
}

func TestImportWithoutEffectIsAnError(t *testing.T) {
	f, e := newFake(t)
	f.answers(t, "load", "load") // succeeds without an import
	_, err := weigh(t, e).Open(t.Context(), environment(t, 1))
	check.Error(t, err, "does not list")
}

func TestImageOfUnknownOriginStays(t *testing.T) {
	f, e := newFake(t)
	f.is(t, "image", "tare.local/probe:another")
	f.answers(t, "images", "no-daemon-create")
	if _, err := weigh(t, e).Open(t.Context(), environment(t, 1)); err == nil || !strings.Contains(err.Error(), "Can not connect") || !slices.Equal(f.left(t), []string{"image"}) {
		t.Errorf("left: %q, %v", f.left(t), err)
	}
}

func TestImageOfAFailedLoadIsRemoved(t *testing.T) {
	f, e := newFake(t)
	f.is(t, "load-breaks", "")
	if _, err := weigh(t, e).Open(t.Context(), environment(t, 1)); err == nil || len(f.left(t)) > 0 {
		t.Errorf("left: %q, %v", f.left(t), err)
	}
}

func TestUnavailableHasReasonAndAdvice(t *testing.T) {
	f, e := newFake(t)
	for _, c := range []struct {
		name   string
		change func(e *subject.Engine)
		want   string // in the reason
		advice string
	}{
		{"no daemon", func(*subject.Engine) { f.answers(t, "version", "no-daemon") }, "Can not connect with server", "systemctl start isulad"},
		{"client without a library", func(e *subject.Engine) {
			e.Command = filepath.Join(f.dir, "unlinked")
			must.OK(t, os.WriteFile(e.Command, []byte("#!/bin/sh\necho 'isula: error while loading shared libraries: libyajl.so.2: cannot open shared object file' >&2; exit 127\n"), 0o755))
		}, "the client does not run", "see ldd " + filepath.Join(f.dir, "unlinked")},
		{"no program", func(e *subject.Engine) { e.Command = filepath.Join(f.dir, "nothing") }, "on PATH", ""},
		{"log driver without a file", func(*subject.Engine) {
			f.answers(t, "version", "")
			f.is(t, "log-driver-info", "syslog")
			f.is(t, "without", "--log-driver")
		}, "containers log to syslog", ""},
		{"remote daemon", func(e *subject.Engine) { e.Address = "tcp://localhost:2375" }, "unix socket", ""},
	} {
		changed := e
		c.change(&changed)
		_, err := New(t.Context(), "isula/runc", "runc", "", changed)
		if u, ok := errors.AsType[*subject.Unavailable](err); !ok || !strings.Contains(u.Reason, c.want) || u.Advice == "" || !strings.Contains(u.Advice, c.advice) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCleanRemovesOnlyObjectsOfTheRun(t *testing.T) {
	f, e := newFake(t)
	s := open(t, e, environment(t, 2))
	performed(t, s, subject.Run, 2)
	f.save(kept{ID: recordedID, Name: "db", Status: "inited", Label: "dev.tare.run=abcdefgh"}) // the label without the name
	cleaner := weigh(t, e)
	before := f.left(t)
	found, err := cleaner.Clean(t.Context(), "abcdefgh", true)
	if err != nil || len(found) != 3 || !slices.Equal(before, f.left(t)) {
		t.Errorf("%q, %v", found, err)
	}
	check.Equal(t, "objects of another run", len(must.Get(cleaner.Clean(t.Context(), "another", false))(t)), 0)
	if _, err := cleaner.Clean(t.Context(), "abcdefgh", false); err != nil || !slices.Equal(f.left(t), []string{"db"}) {
		t.Errorf("left: %q, %v", f.left(t), err)
	}
	must.OK(t, s.Close(context.Background()))
}

func TestOtherLogDriversAreReplacedByJSONFile(t *testing.T) {
	for _, reported := range []string{"json-file", "syslog"} { // info may say json-file for any driver
		f, e := newFake(t)
		f.is(t, "log-driver", "syslog")
		f.is(t, "log-driver-info", reported)
		info := weigh(t, e).Info()
		if info.Config["log driver"] != "json-file" || !slices.ContainsFunc(info.Notes, func(n string) bool { return strings.Contains(n, "log driver") }) {
			t.Errorf("%+v", info)
		}
		s := open(t, e, environment(t, 2))
		performed(t, s, subject.Run, 2)
		must.OK(t, s.Close(t.Context()))
	}
}

func TestCommandLinesMatchTheHelp(t *testing.T) {
	f, e := newFake(t)
	tg := weigh(t, e)
	info := tg.Info()
	sock := "unix://" + filepath.Join(f.dir, "isulad.sock")
	for op, want := range map[subject.Op]string{
		subject.Create: " create -H " + sock + " --name ID --label dev.tare.run=RUN --net none --runtime runc --pull never --log-driver json-file --memory 536870912 --pids-limit 256 --cpu-shares 1024 " + tg.image.Ref + " ID",
		subject.Run:    " run -H " + sock + " --detach --name ID --label dev.tare.run=RUN --net none --runtime runc --pull never --log-driver json-file --memory 536870912 --pids-limit 256 --cpu-shares 1024 " + tg.image.Ref + " ID",
		subject.Start:  " start -H " + sock + " ID",
		subject.Stop:   " stop -H " + sock + " ID",
		subject.Remove: " rm -H " + sock + " ID",
	} {
		check.Equal(t, op, info.Operations[string(op)].Command, e.Command+want)
	}
	if info.Version != "2.1.5" || info.Config["storage driver"] != "overlay" || info.Config["cgroup driver"] != "cgroupfs" || info.Config["log driver"] != "json-file" {
		t.Errorf("%+v", info)
	}
	for _, op := range subject.PodOps {
		check.That(t, info.Operations[string(op)].Absent != "", "%s is not marked absent", op)
	}
}

func TestRecordedAnswersAreParsed(t *testing.T) {
	answer := func(name string) string {
		r := must.Get(recorded("testdata", name))(t)
		return r.stdout
	}
	if client, server := versions(answer("version")); client != "2.1.5" || server != "2.1.5" {
		t.Errorf("version: %q, %q", client, server)
	}
	if client, server := versions(answer("no-daemon")); client != "2.1.5" || server != "" {
		t.Errorf("version without a daemon: %q, %q", client, server)
	}
	for name, want := range map[string]engine.State{
		"inspect":         {Name: "ta-1", Status: engine.Running, Said: "running", Pid: 8005},
		"inspect-stopped": {Name: "ta-1", Status: engine.Exited, Said: "exited"},
	} {
		want.ID, want.Runtime = recordedID, "runc"
		want.Log = "/opt/isulad/lib/engines/runc/" + recordedID + "/console.log"
		check.Equal(t, name, must.Get(engine.Inspected([]byte(answer(name))))(t), []engine.State{want})
	}
	_, e := newFake(t)
	if root := weigh(t, e).Info().Config["storage root"]; root != "/opt/isulad/lib" {
		t.Errorf("storage root %q", root)
	}
	others := answer("images")
	own := strings.Replace(others, "tare.local/app                 1    ", "localhost/tare-probe 0123456789ab-abcdefgh", 1)
	for table, want := range map[string][]string{others: {}, own: {"localhost/tare-probe:0123456789ab-abcdefgh"}} {
		check.Equal(t, "images", must.Get(ownImages([]byte(table), "abcdefgh"))(t), want)
	}
	if got := strings.Fields(answer("ps-filter")); !slices.Contains(got, "ta-2") {
		t.Errorf("ps: %q", got)
	}
}

func TestUnconfiguredRuntimeIsUnavailable(t *testing.T) {
	need.Root(t)
	_, e := newFake(t)
	l, err := net.Listen("unix", e.Address) // the test is the daemon
	must.OK(t, err)
	defer func() { _ = l.Close() }()
	was := DaemonConfig
	defer func() { DaemonConfig = was }()
	DaemonConfig = filepath.Join(t.TempDir(), "daemon.json")
	if _, err := New(t.Context(), "isula/x", "nonesuch", "", e); err != nil {
		t.Errorf("without a configuration: %v", err)
	}
	for text, c := range map[string]struct{ want, has, lacks string }{
		`{"default-runtime":"lcr","runtimes":{"kata-runtime":{},"crun":{}}}`: {"lcr crun kata-runtime", "crun", "runsc"},
		`{"runtimes":{"runc":{},"kata":{}}}`:                                 {"runc kata", "io.containerd.kata.v2", "crun"},
		`{}`:                                                                 {"runc", "lcr", "kata"},
	} {
		must.OK(t, os.WriteFile(DaemonConfig, []byte(text), 0o600))
		check.Equal(t, text, strings.Join(must.Get(Runtimes(t.Context(), e))(t), " "), c.want)
		if _, err := New(t.Context(), "isula/x", c.has, "", e); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var u *subject.Unavailable
		if _, err := New(t.Context(), "isula/x", c.lacks, "", e); !errors.As(err, &u) || !strings.Contains(u.Reason, fmt.Sprintf("no runtime %q", c.lacks)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRuntimeVersionIsKnown(t *testing.T) {
	need.Root(t)
	runc := need.Tool(t, "runc")
	_, e := newFake(t)
	l := must.Get(net.Listen("unix", e.Address))(t) // the test is the daemon
	defer func() { _ = l.Close() }()
	was := DaemonConfig
	defer func() { DaemonConfig = was }()
	DaemonConfig = filepath.Join(t.TempDir(), "daemon.json")
	must.Write(t, DaemonConfig, `{"default-runtime":"mine","runtimes":{"mine":{"path":"`+runc+`"},"none":{"path":"/nowhere/runc"}}}`)
	for runtime, known := range map[string]bool{"": true, "mine": true, "none": false} {
		target := must.Get(New(t.Context(), "isula/x", runtime, "", e))(t)
		if version := target.Info().Config["runtime version"]; (version != "") != known {
			t.Errorf("%q: %q", runtime, version)
		}
	}
}
