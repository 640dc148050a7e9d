package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/thread"
)

func TestProcessesDieWithTheirParent(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-orphans")
	out := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	var pids [3]int
	_, err := fmt.Sscan(line, &pids[0], &pids[1], &pids[2])
	must.That(t, err == nil, "%q: %v", line, err)
	time.Sleep(100 * time.Millisecond) // the load has started
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone(t, pids[:]...)
}

func TestClientsStartInTheirCgroups(t *testing.T) {
	var roots []string
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			roots = append(roots, root)
		}
	}
	if os.Getuid() != 0 || len(roots) == 0 {
		t.Skip("making cgroups needs root and a mounted hierarchy")
	}
	group := func(name string) []string {
		var all []string
		for _, root := range roots {
			dir := filepath.Join(root, fmt.Sprintf("tare-run-load-test-%d-%s", os.Getpid(), name))
			check.Error(t, os.Mkdir(dir, 0o755), "")
			t.Cleanup(func() {
				for range 100 {
					if os.Remove(dir) == nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Errorf("%s was not removed", dir)
			})
			all = append(all, dir)
		}
		return all
	}
	one, two := group("one"), group("two")
	c := started(t, ClientOptions{
		URL: echo(t).URL(), Connections: 4, Duration: time.Minute, Instances: 2, Groups: [][]string{one, two},
	})
	for pid, groups := range map[int][]string{pids(c)[0]: one, pids(c)[1]: two} {
		for _, dir := range groups {
			b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			check.That(t, err == nil && strings.TrimSpace(string(b)) == strconv.Itoa(pid), "%s contains %q, want %d: %v", dir, b, pid, err)
		}
	}
	// Killing one client fails the load.
	time.AfterFunc(200*time.Millisecond, func() { unix.Kill(pids(c)[0], unix.SIGKILL) })
	_, err := c.Run(t.Context())
	check.That(t, err != nil, "a load with a killed client has no error")
}

func TestProcessWithInvalidOutputIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		verb, want string
		within     time.Duration
	}{
		"no JSON":       {"-nonsense", "malformed answer", patience},
		"overlong line": {"-flood", "a line of more than 1024 KiB", patience},
		"no output":     {"-silent", "timed out and was killed", 100 * time.Millisecond},
		"error":         {"-fails", `it is\x1b[31m broken`, patience},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := begin(t.Context(), c.verb, "a process", nil, nil, struct{}{})
			must.OK(t, err)
			var r Result
			err = one.hear(&r, time.Now().Add(c.within))
			check.Error(t, err, c.want)
			_ = one.close()
			gone(t, one.cmd.Process.Pid)
		})
	}
}

func TestHiddenCommandRefusesInvalidInput(t *testing.T) {
	client := func(t *testing.T, in string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/proc/self/exe", verbClient)
		cmd.Stdin = strings.NewReader(in)
		var said strings.Builder
		cmd.Stderr = &said
		_ = cmd.Run() // the exit code shows the failure
		return fmt.Sprintf("exit %d: %s", cmd.ProcessState.ExitCode(), strings.TrimSpace(said.String()))
	}
	golden.Cases(t, "testdata/hidden.txt", client)
	said := client(t, strings.Repeat("[", longestLine+1))
	check.That(t, strings.HasPrefix(said, "exit 1: ") && strings.Contains(said, "a line of more than"), "endless line: %s", said)
}

func TestKilledServerIsAnError(t *testing.T) {
	s := must.Get(Serve(t.Context()))(t)
	unix.Kill(s.child.cmd.Process.Pid, unix.SIGKILL)
	gone(t, s.child.cmd.Process.Pid)
	check.Error(t, s.Close(), "signal: killed")
}

func TestOpenFileLimitIsRaisedOrReported(t *testing.T) {
	lines := strings.Split(itself(t, nil, "-few-files"), "\n")
	want := []string{"<nil>", "500", "prlimit --pid $$ --nofile=1064:1064", "1000 connections need 1064 open files in one process, but the limit is 500"}
	for i, w := range want {
		check.Contains(t, fmt.Sprintf("line %d", i+1), lines[i], w)
	}
}

func TestShortConnectionsReuseLocalPorts(t *testing.T) {
	need.Root(t)
	script := `ip link set lo up && echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range && ` +
		`echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec "$0" -few-ports`
	exe := must.Get(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, exe)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot create a network namespace: %v: %s", err, out)
	}
	lines := strings.Split(string(out), "\n")
	check.That(t, lines[0] == "<nil>" && lines[1] == "800 0 800 <nil>" && strings.Contains(lines[2], "60 connections need 120 local ports"),
		"%s", out)
}

func TestImportHasNoSideEffects(t *testing.T) {
	for i, line := range strings.Fields(itself(t, nil, "-imports")) {
		check.That(t, i != 0 || line == "1", "%s goroutines", line)
		check.That(t, i == 0 || strings.HasPrefix(line, "test.") || line == "update", "unexpected flag %s", line) // update is a flag of package golden
	}
}

// The server of a container may listen on the container's loopback only.
func TestRequestsAreSentFromTheServersNetworkNamespace(t *testing.T) {
	need.Root(t)
	var inside *os.File
	var server net.Listener
	must.OK(t, thread.Apart(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if inside, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		up := exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up")
		if out, err := up.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		server, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}))
	defer inside.Close()
	s := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	defer s.Close()
	go s.Serve(server)
	o := ClientOptions{URL: "http://" + server.Addr().String() + "/", Connections: 2, QPS: 100, Duration: 50 * time.Millisecond}
	_, err := sent(t, o)
	check.That(t, errors.Is(err, ErrNoAnswer), "outside of the namespace: %v", err)
	o.Net = inside
	r, err := sent(t, o)
	check.That(t, err == nil && r.Requests != 0 && r.Errors == 0, "inside of the namespace: %+v, %v", r, err)
}
