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

// quick are the flags of a short load.
var quick = []string{"-c", "4", "-t", "200ms", "--idle", "100ms", "--rounds", "1", "-q", "-o", "r.jsonl"}

// An invalid pin is rejected before anything is opened or waited for.
func TestInvalidPinsAndServersAreRefused(t *testing.T) {
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

// The points of an unreachable or silent server fail within bounded time. The record
// contains the reason. Package load tests other failures of a server.
func TestUnresponsiveServerFailsItsPointsInBoundedTime(t *testing.T) {
	need.Root(t)
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // the kernel accepts connections, but nothing reads them
	must.OK(t, err)
	defer silent.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer refusing.Close()
	taken := must.Get(net.Dial("tcp4", silent.Addr().String()))(t)
	defer taken.Close()
	nobody := taken.LocalAddr().String() // a port in use, without a listener
	// A refused connection needs no short timeout, so a busy machine cannot cause one.
	for name, c := range map[string]struct{ url, timeout, says string }{
		"refused":      {"http://" + nobody + "/", "20s", "connection refused"},
		"silent":       {"http://" + silent.Addr().String() + "/", "300ms", "no answer in time"},
		"error status": {refusing.URL, "20s", "status 503"},
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
				t.Errorf("the report does not contain %q:\n%s", c.says, out)
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

func TestUnknownServerNameFailsBeforeAnythingIsAttached(t *testing.T) {
	need.Root(t)
	place(t)
	began := time.Now()
	ends(t, ExitUsage, "no-such-host.invalid", append([]string{"bpf", "load", "--datapath", "reference", "--url", "http://no-such-host.invalid/"}, quick...)...)
	if took := time.Since(began); took > time.Minute { // a resolver may take 10 s
		t.Errorf("it took %v", took)
	}
	if rec := loaded(t); rec.End == nil || rec.End.Status != "failed" || len(rec.Points)+len(rec.Programs) > 0 {
		t.Errorf("the record: %d points, %d programs, end %+v", len(rec.Points), len(rec.Programs), rec.End)
	}
}

// nothingOf checks that no program or map of a run is attached, pinned or open. The kernel
// removes them asynchronously.
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

// someone returns the attributes of a non-root user with the given capabilities.
func someone(capabilities ...uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: capabilities}
}

func TestMissingCapabilityIsNamed(t *testing.T) {
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
		"list without capabilities":       {[]string{"list", "--interval", "100ms"}, nil, ExitUsage, "CAP_SYS_ADMIN is missing"},
		"load without capabilities":       {append([]string{"load"}, quick...), nil, ExitUsage, "CAP_SYS_ADMIN is missing"},
		"list with BPF capabilities only": {[]string{"list", "--interval", "100ms"}, bpf, ExitUsage, "CAP_BPF and CAP_PERFMON are not enough"},
		"load with BPF capabilities only": {append([]string{"load"}, quick...), bpf, ExitUsage, "CAP_BPF and CAP_PERFMON are not enough"},
		"list with CAP_SYS_ADMIN":         {[]string{"list", "--interval", "100ms"}, []uintptr{unix.CAP_SYS_ADMIN}, ExitDone, ""},
		"load that cannot create cgroups": {append([]string{"load", "--datapath", "reference"}, quick...), append([]uintptr{unix.CAP_SYS_ADMIN}, bpf...), ExitUsage, "make a cgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(path, append([]string{"bpf"}, c.args...)...)
			cmd.Dir, cmd.SysProcAttr = own, someone(c.has...)
			cmd.Env = append(os.Environ(), "TARE_DATA_DIR="+filepath.Join(own, "data"), "TARE_STATE_DIR="+filepath.Join(own, "state"))
			said, _ := cmd.CombinedOutput() // the exit code has the error
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(said), c.says) {
				t.Errorf("exit %d: %s", code, said)
			}
			os.Remove(filepath.Join(own, "r.jsonl"))
		})
	}
}

func TestConnectionsBeyondTheOpenFileLimitAreRefusedWithTheFix(t *testing.T) {
	need.Root(t)
	dir := place(t)
	path := program(t, dir)
	for name, c := range map[string]struct {
		limits string // soft and hard
		says   string // "" if the run succeeds
	}{
		"low hard limit": {"ulimit -n 100", "prlimit --pid $$ --nofile=164:164"},
		"low soft limit": {"ulimit -Sn 100", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-c", c.limits + ` && exec "$0" "$@"`, path, "bpf", "load", "--datapath", "reference", "-c", "100"}, quick[2:]...)
			cmd := exec.Command("sh", args...)
			said, _ := cmd.CombinedOutput() // the exit code has the error
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
