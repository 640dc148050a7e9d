package probe

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// TestEmbeddedProgramsMatchTheirSources rebuilds the probe and the lane. The results must
// be identical to the embedded files.
func TestEmbeddedProgramsMatchTheirSources(t *testing.T) {
	for arch, compiler := range map[string]string{"amd64": "x86_64-linux-gnu-gcc-12", "arm64": "aarch64-linux-gnu-gcc-12"} {
		t.Run(arch, func(t *testing.T) {
			need.Tool(t, compiler)
			cmd := exec.Command("../../scripts/build-probe", "--check")
			cmd.Env = append(os.Environ(), "ARCHES="+arch)
			out, err := cmd.CombinedOutput()
			check.That(t, err == nil, "%v\n%s", err, out)
		})
	}
}

func TestProbeReportsAndExitsOnRequest(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, Install(dir))
	out, err := exec.Command(filepath.Join(dir, Name), "--exit", "token").Output()
	check.That(t, err == nil && strings.HasPrefix(string(out), "tare-probe/1 token ") && strings.HasSuffix(string(out), "\n"),
		"%q %v", out, err)
	err = exec.Command(filepath.Join(dir, Name), strings.Repeat("x", 200)).Run()
	check.That(t, err != nil, "a token of 200 characters was accepted")
}

func TestPausePrintsNothingAndStaysUntilSIGTERM(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0) // every write fails, as in a gVisor sandbox
	must.OK(t, err)
	defer full.Close()
	for _, args := range [][]string{{"/probe", "pause"}, {"/pause"}} {
		cmd := exec.Cmd{Path: filepath.Join(installed, Name), Args: args, Stdout: full}
		must.OK(t, cmd.Start())
		for caught(t, cmd.Process.Pid)&(1<<(syscall.SIGTERM-1)) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		check.That(t, err == nil, "%q: %v", args, err)
	}
	workload := exec.Cmd{Path: filepath.Join(installed, Name), Args: []string{Name, "token"}, Stdout: full}
	err = workload.Run()
	check.That(t, workload.ProcessState.ExitCode() == 3, "an unknown workload: %v", err)
}

// caught returns the set of signals for which a process has a handler.
func caught(t *testing.T, pid int) (set uint64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "\nSigCgt:")
	_, e := fmt.Sscanf(after, "%x", &set)
	check.That(t, err == nil && e == nil, "%q: %v, %v", status, err, e)
	return set
}

// Kata's agent sends SIGKILL instead of SIGTERM if the first process has no handler for
// it in SigCgt. A process that only waits for the signal has no handler.
func TestWaitingProbeHandlesSIGTERM(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(filepath.Join(installed, Name), "token")
		if os.Geteuid() == 0 { // as in a container, where PID 1 only gets signals that it handles
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		}
		out := must.Get(cmd.StdoutPipe())(t)
		must.OK(t, cmd.Start())
		line, _ := bufio.NewReader(out).ReadString('\n')
		set := caught(t, cmd.Process.Pid)
		check.That(t, set&(1<<(signal-1)) != 0, "%v: SigCgt is %x after %q", signal, set, line)
		_ = cmd.Process.Signal(signal)
		err := cmd.Wait()
		check.That(t, err == nil, "on %v: %v, want exit status 0", signal, err)
	}
}

// installed is the folder of the probe used by all tests. TestMain writes it, because a
// test that writes it might get ETXTBSY: a concurrent fork keeps the file open for a
// moment.
var installed string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tare-probe-")
	if err == nil {
		err = Install(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	installed = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func command(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(installed, args[0]), args[1:]...)
}

// The kernel counts the pages while the probe holds them.
func TestHoldUsesExactlyTheRequestedMemory(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{1, 1 << 20, 64<<20 + 4096} {
		out, errs, exit := run(t, HoldArgs(bytes, time.Millisecond))
		if held, err := ParseHeld(out); err != nil || exit != 0 || errs != "" || held.Bytes != bytes || held.Filled <= 0 || held.Held < time.Millisecond {
			t.Errorf("%d: %q %q %d: %+v %v", bytes, out, errs, exit, held, err)
		}
		cmd := command(t, HoldArgs(bytes, time.Hour))
		said := must.Get(cmd.StdoutPipe())(t)
		must.OK(t, cmd.Start())
		_, _ = bufio.NewReader(said).ReadString('\n') // all memory is allocated
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		_, after, _ := strings.Cut(string(status), "\nRssAnon:")
		got, want := int64(0), (bytes+4095)/4096*4
		if _, e := fmt.Sscan(after, &got); err != nil || e != nil || got < want || got > want+64 {
			t.Errorf("%d KiB of anonymous memory, want %d and a small stack: %v %v", got, want, err, e)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// Other processes may use the CPU. The probe only guarantees to use at most the requested
// time, and to report the used time.
func TestSpinReportsTheUsedCPU(t *testing.T) {
	for _, cpus := range []float64{0.25, 1} {
		const d = 500 * time.Millisecond
		spun, used := spin(t, cpus, d)
		// The probe may use one slice more. The kernel also counts the exec and the exit.
		most := time.Duration(1.01*cpus*float64(spun.Wall)) + time.Millisecond
		check.That(t, spun.Wall >= d && spun.CPU <= most, "%v of a CPU: %+v", cpus, spun)
		more := used - spun.CPU
		check.That(t, more >= 0 && more <= 50*time.Millisecond, "%v of a CPU: the kernel counts %v, the probe reports %v", cpus, used, spun.CPU)
	}
}

func spin(t *testing.T, cpus float64, d time.Duration) (Spun, time.Duration) {
	t.Helper()
	cmd := command(t, SpinArgs(cpus, d))
	out := must.Get(cmd.Output())(t)
	spun := must.Get(ParseSpun(string(out)))(t)
	return spun, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func TestLoadEndsOnSIGTERM(t *testing.T) {
	for _, args := range [][]string{HoldArgs(1<<20, time.Hour), HoldArgs(1<<34, time.Hour), SpinArgs(0.5, time.Hour), SpinArgs(1, time.Hour)} {
		cmd := command(t, args)
		must.OK(t, cmd.Start())
		time.Sleep(30 * time.Millisecond)
		begun := time.Now()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGTERM || time.Since(begun) > time.Minute {
			t.Errorf("%q: %v after %v", args, cmd.ProcessState, time.Since(begun))
		}
	}
}
