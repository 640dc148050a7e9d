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

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// TestTheEmbeddedProgramsAreWhatTheirSourcesGive rebuilds the probe and the
// lane and compares them byte by byte.
func TestTheEmbeddedProgramsAreWhatTheirSourcesGive(t *testing.T) {
	for arch, compiler := range map[string]string{"amd64": "x86_64-linux-gnu-gcc-12", "arm64": "aarch64-linux-gnu-gcc-12"} {
		t.Run(arch, func(t *testing.T) {
			need.Tool(t, compiler)
			cmd := exec.Command("../../scripts/build-probe", "--check")
			cmd.Env = append(os.Environ(), "ARCHES="+arch)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAProbeReportsAndLeavesWhenAsked(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, Install(dir))
	out, err := exec.Command(filepath.Join(dir, Name), "--exit", "token").Output()
	if err != nil || !strings.HasPrefix(string(out), "tare-probe/1 token ") || !strings.HasSuffix(string(out), "\n") {
		t.Errorf("%q %v", out, err)
	}
	if err := exec.Command(filepath.Join(dir, Name), strings.Repeat("x", 200)).Run(); err == nil {
		t.Error("a token of 200 characters was taken")
	}
}

func TestWhatHoldsAPodSaysNothingAndStaysUntilItIsTold(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0) // whatever is written fails, as in gVisor's sandboxes
	must.OK(t, err)
	defer full.Close()
	for _, args := range [][]string{{"/probe", "pause"}, {"/pause"}} {
		cmd := exec.Cmd{Path: filepath.Join(installed, Name), Args: args, Stdout: full}
		must.OK(t, cmd.Start())
		for caught(t, cmd.Process.Pid)&(1<<(syscall.SIGTERM-1)) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	workload := exec.Cmd{Path: filepath.Join(installed, Name), Args: []string{Name, "token"}, Stdout: full}
	if err := workload.Run(); workload.ProcessState.ExitCode() != 3 {
		t.Errorf("a workload of which nobody knows: %v", err)
	}
}

// caught are the signals that a process handles.
func caught(t *testing.T, pid int) (set uint64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "\nSigCgt:")
	if _, e := fmt.Sscanf(after, "%x", &set); err != nil || e != nil {
		t.Errorf("%q: %v, %v", status, err, e)
	}
	return set
}

// Kata's agent sends SIGKILL in place of SIGTERM to a first process whose SigCgt lacks
// it, as one that only waits for it does.
func TestAProbeThatWaitsHasAHandlerForSIGTERMAndEndsOnIt(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(filepath.Join(installed, Name), "token")
		if os.Geteuid() == 0 { // as in a container, where only what is handled arrives
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		}
		out, err := cmd.StdoutPipe()
		must.OK(t, err)
		must.OK(t, cmd.Start())
		line, _ := bufio.NewReader(out).ReadString('\n')
		if set := caught(t, cmd.Process.Pid); set&(1<<(signal-1)) == 0 {
			t.Errorf("%v: SigCgt is %x after %q", signal, set, line)
		}
		_ = cmd.Process.Signal(signal)
		if err := cmd.Wait(); err != nil {
			t.Errorf("on %v: %v, want exit status 0", signal, err)
		}
	}
}
