package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// TestMain lets tests use this very binary as tare top, in processes of its own
// that have a terminal.
func TestMain(m *testing.M) {
	if os.Getenv("TARE_TEST_AS_TOP") != "" {
		ctx, cancel := context.WithCancel(context.Background())
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
		go func() { <-signals; cancel() }()
		switch os.Getenv("TARE_TEST_AS_TOP") {
		case "panic":
			paniced()
		case "second": // as a second signal does, while the view hangs
			go func() {
				second := make(chan os.Signal, 1)
				signal.Notify(second, unix.SIGUSR1)
				<-second
				Restore()
				Restore()
				os.Exit(5)
			}()
		}
		if err := Run(ctx, os.Stdout, Options{Interval: 200 * time.Millisecond}); err != nil {
			fmt.Fprintln(os.Stderr, "ended:", err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// paniced takes over the terminal and fails.
func paniced() {
	t, err := openTerminal(os.Stdout)
	if err != nil {
		os.Exit(4)
	}
	defer t.close()
	panic("as a test wants it")
}

const held = 24 << 20

// runc starts a container whose first process holds memory and another of its
// own that uses a third of a CPU.
func runc(t *testing.T) (id, group string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("runc needs root")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skipf("there is no runc here: %v", err)
	}
	dir, run := t.TempDir(), fmt.Sprintf("%08x", os.Getpid())
	hs, err := cgroup.Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cgroup.Remove(hs, cgroup.Prefix+run); err != nil {
			t.Error(err)
		}
	})
	id = "top-" + run
	bundle := filepath.Join(dir, id)
	if err := oci.WriteBundle(bundle, run, subject.DefaultLimits); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := func(args ...string) {
		t.Helper()
		cmd := exec.Command("runc", append([]string{"--root", filepath.Join(dir, "state")}, args...)...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s: %v: %s", cmd, err, text)
		}
	}
	command("run", "--detach", "--bundle", bundle, id)
	t.Cleanup(func() { command("delete", "--force", id) })
	command(append([]string{"exec", "--detach", id, "/" + probe.Name}, probe.HoldArgs(held, time.Minute)[1:]...)...)
	command(append([]string{"exec", "--detach", id, "/" + probe.Name}, probe.SpinArgs(0.3, time.Minute)[1:]...)...)
	group = "/" + cgroup.Prefix + run + "/" + id
	// A detached exec returns while its process is still the runtime's own.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		own := false
		for _, pid := range cgroup.Procs(hs, group) {
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			own = own || err == nil && strings.HasPrefix(string(comm), "runc")
		}
		if !own {
			return id, group
		}
	}
	t.Fatal("the containers' commands did not begin in ten seconds")
	return "", ""
}

func TestOnceFindsARealContainer(t *testing.T) {
	_, group := runc(t)
	var out bytes.Buffer
	if err := Run(t.Context(), &out, Options{Interval: time.Second, Once: true, JSON: true, Selection: Selection{Filter: group}}); err != nil {
		t.Fatal(err)
	}
	var v struct {
		Count     int
		Sandboxes []struct {
			Name, Engine string
			IDs          []string
			CPU          float64
			Memory       int64
			Processes    int
			Limit        *int64
			Groups       []struct{ Path, Charge string }
			Roles        []struct {
				Role      string
				PSS       int64
				Processes []struct {
					Pid    int
					Rule   string
					Groups []struct{ Paths map[string]string }
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || v.Count < 1 || len(v.Sandboxes) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	s := v.Sandboxes[0]
	if s.Engine != "oci" || s.Processes != 3 || s.Memory < held || s.Memory > held+16<<20 || s.CPU < 0.2 || s.CPU > 0.4 || s.Limit == nil {
		t.Errorf("%+v", s)
	}
	if len(s.Groups) != 1 || s.Groups[0].Path != group || s.Groups[0].Charge != "pod" {
		t.Errorf("%+v", s.Groups)
	}
	if len(s.Roles) != 1 || s.Roles[0].Role != "workload" || len(s.Roles[0].Processes) != 3 || s.Roles[0].PSS < held {
		t.Fatalf("%+v", s.Roles)
	}
	for _, p := range s.Roles[0].Processes {
		if p.Pid <= 0 || p.Rule == "" || len(p.Groups) != 1 || p.Groups[0].Paths["memory"]+p.Groups[0].Paths[""] == "" {
			t.Errorf("%+v", p)
		}
	}
	out.Reset()
	if err := Run(t.Context(), &out, Options{Interval: 100 * time.Millisecond, Once: true, Selection: Selection{Filter: group}}); err != nil || !strings.Contains(out.String(), filepath.Base(group)[:12]) {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestPlainOutputIsABlockEveryInterval(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err := Run(ctx, &out, Options{Interval: 200 * time.Millisecond})
	if blocks := strings.Count(out.String(), "\nnode   memory"); !errors.Is(err, context.DeadlineExceeded) || blocks < 2 {
		t.Errorf("%v, %d blocks:\n%s", err, blocks, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("an escape character: %q", out.String())
	}
}

// seat is where a person sits: the other side of a terminal, see pts(4).
type seat struct {
	t       *testing.T
	person  *os.File
	program *os.File
	cmd     *exec.Cmd
	before  unix.Termios
}

func sit(t *testing.T, how string, env ...string) *seat {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, person: person}
	if s.program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.program.Close() })
	s.before = s.mode()
	s.cmd = exec.Command("/proc/self/exe")
	s.cmd.Env = append(os.Environ(), "TARE_TEST_AS_TOP="+how, "TERM=xterm")
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.program, s.program, io.Discard
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *seat) mode() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.program.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}

// until reads what is drawn until a text is there.
func (s *seat) until(text string) string {
	s.t.Helper()
	_ = s.person.SetReadDeadline(time.Now().Add(20 * time.Second))
	var seen []byte
	buffer := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := s.person.Read(buffer)
		seen = append(seen, buffer[:n]...)
		if err != nil {
			s.t.Fatalf("%q is not drawn: %v: %q", text, err, seen)
		}
	}
	return string(seen)
}

func TestTheTerminalIsGivenBackOnEveryPath(t *testing.T) {
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	for name, c := range map[string]struct {
		how  string
		end  func(s *seat) error
		code []int
	}{
		"q":                      {"1", func(s *seat) error { _, err := s.person.WriteString("q"); return err }, []int{0}},
		"Ctrl-C":                 {"1", func(s *seat) error { _, err := s.person.WriteString("\x03"); return err }, []int{0}},
		"Escape":                 {"1", func(s *seat) error { _, err := s.person.WriteString("\x1b"); return err }, []int{0}},
		"SIGTERM":                {"1", func(s *seat) error { return s.cmd.Process.Signal(unix.SIGTERM) }, []int{3}},
		"SIGINT":                 {"1", func(s *seat) error { return s.cmd.Process.Signal(unix.SIGINT) }, []int{3}},
		"a restore from outside": {"second", func(s *seat) error { return s.cmd.Process.Signal(unix.SIGUSR1) }, []int{5}},
		"a panic":                {"panic", func(*seat) error { return nil }, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, c.how)
			seen := s.until(enter)
			if c.how != "panic" {
				seen += s.until("h help")
				if raw := s.mode(); raw.Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) != 0 {
					t.Errorf("not raw: %x", raw.Lflag)
				}
			}
			if err := c.end(s); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(seen, leave) {
				s.until(leave)
			}
			err := s.cmd.Wait()
			if code := s.cmd.ProcessState.ExitCode(); !slices.Contains(c.code, code) {
				t.Errorf("exit %d: %v", code, err)
			}
			if after := s.mode(); after != s.before {
				t.Errorf("the mode is %+v, and was %+v", after, s.before)
			}
		})
	}
}

func TestWhereThereIsNoTerminalRestoreDoesNothing(t *testing.T) {
	Restore()
	Restore()
}

func TestATerminalThatTakesNothingDoesNotHoldUpTheEnd(t *testing.T) {
	taken.Store(&terminal{out: stuck{t.Context().Done()}, fd: -1, in: -1})
	defer taken.Store(nil)
	begin := time.Now()
	Restore()
	if d := time.Since(begin); d < longestRestore || d > 10*longestRestore {
		t.Errorf("it took %s", d)
	}
}

// stuck takes no output.
type stuck struct{ end <-chan struct{} }

func (s stuck) Write([]byte) (int, error) { <-s.end; return 0, os.ErrClosed }

func TestATerminalWithoutACursorGetsPlainBlocks(t *testing.T) {
	for _, kind := range []string{"TERM=dumb", "TERM="} {
		s := sit(t, "1", kind)
		seen := s.until("tare top itself") + s.until("\nnode   memory")
		if strings.Contains(seen, "\x1b") {
			t.Errorf("%s: an escape character: %q", kind, seen)
		}
		if s.mode() != s.before {
			t.Errorf("%s: the mode is changed", kind)
		}
		if err := s.cmd.Process.Signal(unix.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait()
		if code := s.cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("%s: exit %d", kind, code)
		}
	}
}

func TestAScreenThatChangesItsSizeIsDrawnAnew(t *testing.T) {
	s := sit(t, "1")
	s.until("h help")
	if err := unix.IoctlSetWinsize(int(s.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 60, Row: 8}); err != nil {
		t.Fatal(err)
	}
	s.until("r reverse  / filter  e roles\x1b[0m")
	if _, err := s.person.WriteString("h"); err != nil {
		t.Fatal(err)
	}
	s.until("a container, or a pod")
	if _, err := s.person.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
