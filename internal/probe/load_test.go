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
)

// command runs the real program with the arguments of a load.
// installed is where the probe is that all tests run. It is written before any test
// begins: what one writes while another forks stays open in the child for a moment, and
// cannot be executed then (ETXTBSY).
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

// The pages of the mapping are counted by the kernel, while they are held.
func TestExactlyTheMemoryThatWasAskedForIsHeld(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{1, 1 << 20, 64<<20 + 4096} {
		out, errs, exit := run(t, HoldArgs(bytes, time.Millisecond))
		if held, err := ParseHeld(out); err != nil || exit != 0 || errs != "" || held.Bytes != bytes || held.Filled <= 0 || held.Held < time.Millisecond {
			t.Errorf("%d: %q %q %d: %+v %v", bytes, out, errs, exit, held, err)
		}
		cmd := command(t, HoldArgs(bytes, time.Hour))
		said, err := cmd.StdoutPipe()
		must.OK(t, err)
		must.OK(t, cmd.Start())
		_, _ = bufio.NewReader(said).ReadString('\n') // that all of it is there
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		_, after, _ := strings.Cut(string(status), "\nRssAnon:")
		got, want := int64(0), (bytes+4095)/4096*4
		if _, e := fmt.Sscan(after, &got); err != nil || e != nil || got < want || got > want+64 {
			t.Errorf("%d KiB of anonymous memory, want %d and a few for the stack: %v %v", got, want, err, e)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// What others leave of a CPU is not in the probe's hands: that it takes no more than
// it was asked for is, and to tell what it took.
func TestTheCPUThatWasUsedIsTold(t *testing.T) {
	for _, cpus := range []float64{0.25, 1} {
		const d = 500 * time.Millisecond
		spun, used := spin(t, cpus, d)
		// A last piece of work may come on top, and the kernel also has the exec and the end.
		if most := time.Duration(1.01*cpus*float64(spun.Wall)) + time.Millisecond; spun.Wall < d || spun.CPU > most {
			t.Errorf("%v of a CPU: %+v", cpus, spun)
		}
		if more := used - spun.CPU; more < 0 || more > 50*time.Millisecond {
			t.Errorf("%v of a CPU: the kernel counts %v, the probe %v", cpus, used, spun.CPU)
		}
	}
}

func spin(t *testing.T, cpus float64, d time.Duration) (Spun, time.Duration) {
	t.Helper()
	cmd := command(t, SpinArgs(cpus, d))
	out, err := cmd.Output()
	must.OK(t, err)
	spun, err := ParseSpun(string(out))
	must.OK(t, err)
	return spun, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func TestALoadEndsOnSIGTERM(t *testing.T) {
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
