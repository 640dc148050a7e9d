package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/ports"
)

func TestProbeReportsItsStartAndExecutesAProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"none/tool": 0o644, "some/tool": 0o755} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho tool \"$@\" >&2; exit 5\n"), mode))
	}
	path := "PATH=" + dir + "/absent:" + dir + "/none:" + dir + "/some"
	for name, c := range map[string]struct {
		args    []string
		env     string
		exit    int
		out, is string
	}{
		"path":                    {[]string{"t-1", "/bin/sh", "-c", "echo $0 $1; exit 7", "a b", "c"}, "", 7, "a b c\n", ""},
		"found in PATH":           {[]string{"t-1", "tool", "x"}, path, 5, "", "tool x\n"},
		"no PATH":                 {[]string{"t-1", "sh", "-c", "exit 3"}, "A=1", 3, "", ""},
		"missing program":         {[]string{"t-1", "nonesuch"}, path, 127, "", "tare-probe: cannot run nonesuch: no such program: errno 2\n"},
		"missing path":            {[]string{"t-1", "/no/such"}, "", 127, "", "tare-probe: cannot run /no/such: no such program: errno 2\n"},
		"not executable":          {[]string{"t-1", "tool"}, "PATH=" + dir + "/none", 126, "", "tare-probe: cannot run tool: errno 13\n"},
		"unknown format":          {[]string{"t-1", "/proc/self/cmdline"}, "", 126, "", "tare-probe: cannot run /proc/self/cmdline: errno 13\n"},
		"default signal handlers": {[]string{"t-1", "/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"}, "", 0, "SigBlk:\t0000000000000000\n" + ignored(t), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, append([]string{Name}, c.args...))
			if c.env != "" {
				cmd.Env = []string{c.env}
			}
			var out, is strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &is
			err := cmd.Run()
			exit := (*exec.ExitError)(nil)
			must.That(t, err == nil || errors.As(err, &exit), "%v", err)
			line, rest, _ := strings.Cut(out.String(), "\n")
			check.That(t, regexp.MustCompile(`^tare-probe/1 t-1 [0-9]+$`).MatchString(line) && rest == c.out && is.String() == c.is && cmd.ProcessState.ExitCode() == c.exit,
				"got %q, %q and status %d; want the probe line and %q, %q and %d", out.String(), is.String(), cmd.ProcessState.ExitCode(), c.out, c.is, c.exit)
		})
	}
}

// ignored returns the SigIgn line of a program started by this test. It lacks SIGINT and
// SIGTERM, because the probe restores their defaults.
func ignored(t *testing.T) string {
	t.Helper()
	line, err := exec.Command("grep", "^SigIgn:", "/proc/self/status").Output()
	var mask uint64
	_, scanned := fmt.Sscanf(string(line), "SigIgn: %x", &mask)
	must.That(t, err == nil && scanned == nil, "%q: %v, %v", line, err, scanned)
	return fmt.Sprintf("SigIgn:\t%016x\n", mask&^(1<<(syscall.SIGINT-1)|1<<(syscall.SIGTERM-1)))
}

func TestServerDelaysLeaksAndHangsAsRequested(t *testing.T) {
	t.Parallel()
	port := ports.Held(t)
	cmd := command(t, ServeArgs(port, "delay=200", "leak=100000", "hang=201"))
	began := time.Now()
	must.OK(t, cmd.Start())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	get := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if b, err := io.ReadAll(reply.Body); reply.StatusCode != 200 || string(b) != "tare\n" || err != nil {
			return fmt.Errorf("%s %q %w", reply.Status, b, err)
		}
		return nil
	}
	for get(ctx) != nil && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	waited := time.Since(began)
	check.That(t, waited >= 200*time.Millisecond, "the first answer came after %v", waited)
	anonymous := func() int64 {
		dir := must.Get(new(procs.Reader).Open(cmd.Process.Pid))(t)
		defer dir.Close()
		m := must.Get(dir.Memory())(t)
		return m.Anon
	}
	before := anonymous()
	for range 199 {
		must.OK(t, get(ctx))
	}
	grown := anonymous() - before
	check.That(t, grown >= 199*100000-4096 && grown <= 199*100000+4096, "memory grew by %d, want %d ± one page", grown, 199*100000)
	must.OK(t, get(ctx))
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	check.Is(t, get(short), context.DeadlineExceeded)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	must.OK(t, cmd.Wait())
}

func TestInRunsAProgramInAFolder(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	cmd := command(t, InArgs(dir, "/bin/sh", "-c", `echo "$(pwd -P) $0 $1 $OF_OURS"`, "first", "two words"))
	cmd.Env = append(os.Environ(), "OF_OURS=kept")
	out, err := cmd.Output()
	want := dir + " first two words kept\n"
	check.That(t, err == nil && string(out) == want, "%q, %v; want %q", out, err, want)
}

func TestInReturnsTheExitStatusOr127(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"exit status of the program": {InArgs("/", "/bin/sh", "-c", "exit 7"), 7, ""},
		"missing folder":             {InArgs("/no/such/folder", "/bin/sh"), 127, "tare-probe: in: the folder: errno 2\n"},
		"file instead of a folder":   {InArgs("/proc/self/stat", "/bin/sh"), 127, "tare-probe: in: the folder: errno 20\n"},
		"missing program":            {InArgs("/", "/no/such/program"), 127, "tare-probe: in: the program: errno 2\n"},
		"no program":                 {InArgs("/"), 2, "tare-probe: in FOLDER PROGRAM ARGUMENT...\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, tc.args)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != tc.exit || stderr.String() != tc.says {
				t.Errorf("%v, %q; want exit status %d and %q", err, stderr.String(), tc.exit, tc.says)
			}
		})
	}
}
