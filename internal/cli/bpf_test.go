package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// quick are flags of a load that is over at once.
var quick = []string{"-c", "4", "-t", "200ms", "--idle", "100ms", "--rounds", "1", "-q", "-o", "r.jsonl"}

// What is no pin is neither opened nor waited for.
func TestPinsAndServersThatCannotBeMeasuredAreRefused(t *testing.T) {
	need.Root(t)
	dir := place(t)
	must.OK(t, unix.Mkfifo("pipe", 0o600))
	must.OK(t, os.WriteFile("plain", nil, 0o600))
	must.OK(t, os.Symlink(dir, "odd\x1b[2J"))
	began := time.Now()
	commands(t, "bpf", nil, "DIR", dir)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A server that is not there, says nothing or refuses costs its points, not the user's
// time, and the record has why. What else a server can do wrong is tested in load.
func TestAServerThatDoesNotAnswerCostsItsPointsInBoundedTime(t *testing.T) {
	need.Root(t)
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // the kernel takes connections, and nobody reads
	must.OK(t, err)
	defer silent.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer refusing.Close()
	taken := must.Get(net.Dial("tcp4", silent.Addr().String()))(t)
	defer taken.Close()
	nobody := taken.LocalAddr().String() // where nobody can listen meanwhile
	// Where nothing is waited for, that the machine has no CPU for a while is no time-out.
	for name, c := range map[string]struct{ url, timeout, says string }{
		"nobody listens": {"http://" + nobody + "/", "20s", "connection refused"},
		"it stalls":      {"http://" + silent.Addr().String() + "/", "300ms", "no answer in time"},
		"it refuses":     {refusing.URL, "20s", "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			place(t)
			began := time.Now()
			code, out, stderr := tare(t, append([]string{"bpf", "load", "--datapath", "reference", "--url", c.url, "--timeout", c.timeout}, quick...)...)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if code != ExitFailed || !strings.Contains(stderr, "record: ") {
				t.Errorf("exit %d\n%s\n%s", code, out, stderr)
			}
			if flat := strings.Join(strings.Fields(out), " "); !strings.Contains(flat, c.says) || !strings.Contains(flat, "failed 2/2 points") {
				t.Errorf("the report does not say %q:\n%s", c.says, out)
			}
			failed := 0
			rec := loaded(t)
			for _, p := range rec.Points {
				if p.Phase == record.PhaseLoad {
					failed++
					if p.Failure == nil || p.Failure.Kind != record.FailError || !strings.Contains(p.Failure.Detail, c.says) {
						t.Errorf("%+v", p)
					}
				}
			}
			check.Equal(t, "points of load", failed, 2)
			nothingOf(t, rec)
		})
	}
}

func TestAServerWhoseNameNobodyHasEndsTheRunBeforeAnythingIsAttached(t *testing.T) {
	need.Root(t)
	place(t)
	began := time.Now()
	ends(t, ExitUsage, "no-such-host.invalid", append([]string{"bpf", "load", "--datapath", "reference", "--url", "http://no-such-host.invalid/"}, quick...)...)
	if took := time.Since(began); took > time.Minute { // a resolver may take its ten
		t.Errorf("it took %v", took)
	}
	if rec := loaded(t); rec.End == nil || rec.End.Status != "failed" || len(rec.Points)+len(rec.Programs) > 0 {
		t.Errorf("the record: %d points, %d programs, end %+v", len(rec.Points), len(rec.Programs), rec.End)
	}
}

// nothingOf looks whether a run's programs and maps are gone: what is attached,
// pinned or held is not. The kernel takes them apart when it has time.
func nothingOf(t *testing.T, rec *record.Record) {
	t.Helper()
	check.Equal(t, "programs are in the record", len(rec.Programs), 2)
	var left []string
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		left = left[:0]
		for _, p := range rec.Programs {
			program, err := ebpf.NewProgramFromID(ebpf.ProgramID(p.ID))
			if program != nil {
				program.Close()
			}
			if !errors.Is(err, os.ErrNotExist) {
				left = append(left, fmt.Sprintf("program %d %s (%v)", p.ID, p.Name, err))
			}
			for _, m := range p.Maps {
				open, err := ebpf.NewMapFromID(ebpf.MapID(m.ID))
				if open != nil {
					open.Close()
				}
				if !errors.Is(err, os.ErrNotExist) {
					left = append(left, fmt.Sprintf("map %d %s (%v)", m.ID, m.Name, err))
				}
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left in the kernel: %q", left)
}

// someone is a user who is not root, with some capabilities.
func someone(capabilities ...uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: capabilities}
}

func TestWithoutPermissionTheMissingCapabilityIsNamed(t *testing.T) {
	need.Root(t)
	dir := place(t)
	path := program(t, dir)
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		must.OK(t, os.Chmod(at, 0o755))
	}
	own := filepath.Join(dir, "own")
	must.OK(t, os.Mkdir(own, 0o755))
	must.OK(t, os.Chown(own, 65534, 65534))
	bpf := []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN}
	for name, c := range map[string]struct {
		args []string
		has  []uintptr
		code int
		says string
	}{
		"a list by nobody":                        {[]string{"list", "--interval", "100ms"}, nil, ExitUsage, "CAP_SYS_ADMIN is missing"},
		"a load by nobody":                        {append([]string{"load"}, quick...), nil, ExitUsage, "CAP_SYS_ADMIN is missing"},
		"a list with those of BPF only":           {[]string{"list", "--interval", "100ms"}, bpf, ExitUsage, "CAP_BPF and CAP_PERFMON are not enough"},
		"a load with those of BPF only":           {append([]string{"load"}, quick...), bpf, ExitUsage, "CAP_BPF and CAP_PERFMON are not enough"},
		"a list with the one that it takes":       {[]string{"list", "--interval", "100ms"}, []uintptr{unix.CAP_SYS_ADMIN}, ExitDone, ""},
		"a load that cannot make its own cgroups": {append([]string{"load", "--datapath", "reference"}, quick...), append([]uintptr{unix.CAP_SYS_ADMIN}, bpf...), ExitUsage, "make a cgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(path, append([]string{"bpf"}, c.args...)...)
			cmd.Dir, cmd.SysProcAttr = own, someone(c.has...)
			cmd.Env = append(os.Environ(), "TARE_DATA_DIR="+filepath.Join(own, "data"), "TARE_STATE_DIR="+filepath.Join(own, "state"))
			said, _ := cmd.CombinedOutput() // the code says it
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(said), c.says) {
				t.Errorf("exit %d: %s", code, said)
			}
			os.Remove(filepath.Join(own, "r.jsonl"))
		})
	}
}

func TestConnectionsBeyondTheLimitOfOpenFilesAreRefusedWithTheCommand(t *testing.T) {
	need.Root(t)
	dir := place(t)
	path := program(t, dir)
	for name, c := range map[string]struct {
		limits string // soft and hard
		says   string // "": it is done
	}{
		"the hard limit is too low": {"ulimit -n 100", "prlimit --pid $$ --nofile=164:164"},
		"only the soft one is":      {"ulimit -Sn 100", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-c", c.limits + ` && exec "$0" "$@"`, path, "bpf", "load", "--datapath", "reference", "-c", "100"}, quick[2:]...)
			cmd := exec.Command("sh", args...)
			said, _ := cmd.CombinedOutput() // the code says it
			code := cmd.ProcessState.ExitCode()
			if c.says == "" {
				if code != ExitDone || loaded(t).Points[0].Asked.Connections != 100 {
					t.Errorf("exit %d: %s", code, said)
				}
				return
			}
			if _, err := os.Stat("r.jsonl"); code != ExitUsage || !strings.Contains(string(said), c.says) || !strings.Contains(string(said), "100 connections need 164 open files") || err == nil {
				t.Errorf("exit %d: %s", code, said)
			}
		})
		os.Remove("r.jsonl")
	}
}
