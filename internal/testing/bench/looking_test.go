package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/sampler"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// many is the number of cgroups and containers to read.
const many = 500

// groups creates cgroups of a run and passes their paths to a function. They are removed
// with the run.
func groups(b *testing.B) (hs []cgroup.Hierarchy, paths []string) {
	b.Helper()
	run := owned(b)
	hs = must.Get(cgroup.Hierarchies())(b)
	controllers := []string{"memory", "cpuacct", "cpu", "blkio", "pids"}
	if cgroup.ModeOf(hs) == cgroup.V2 {
		controllers = []string{"memory", "cpu", "io", "pids"}
	}
	hs = cgroup.Using(hs, controllers...)
	parent := cgroup.Prefix + run.ID + "/bench"
	must.OK(b, cgroup.Delegate(hs, parent, controllers...))
	for i := range many {
		path := fmt.Sprintf("/%s/%s-%d", parent, run.ID, i)
		for _, h := range hs {
			must.OK(b, os.Mkdir(filepath.Join(h.Mount, path), 0o755))
		}
		paths = append(paths, path)
	}
	return hs, paths
}

// BenchmarkSampler compares a tick over many cgroups with a loop that only reads the same
// files through open descriptors. The tick may take at most 1.5 times as long. The two
// are a tick apart, so that neither finds the other's data in the CPU caches.
func BenchmarkSampler(b *testing.B) {
	hs, paths := groups(b)
	var bare []int
	for _, path := range paths {
		for _, name := range []string{"memory.usage_in_bytes", "memory.current", "memory.stat", "cpuacct.usage", "cpu.stat"} {
			for _, h := range hs {
				if name == "cpu.stat" && h.Version == 1 {
					continue
				}
				if fd, err := unix.Open(filepath.Join(h.Mount, path, name), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
					b.Cleanup(func() { unix.Close(fd) })
					bare = append(bare, fd)
					break
				}
			}
		}
	}
	must.That(b, len(bare) == 3*many, "%d cgroups have %d files of memory and CPU time between them, want three each", many, len(bare))
	system, tick := meter(b, paths)
	buffer := make([]byte, 64<<10)
	read := func() error {
		for _, fd := range bare {
			if _, err := unix.Pread(fd, buffer, 0); err != nil {
				return err
			}
		}
		return nil
	}
	each := func(pass func() error) func() float64 {
		return func() float64 {
			time.Sleep(100 * time.Millisecond)
			begin := clock(unix.CLOCK_THREAD_CPUTIME_ID)
			must.OK(b, pass())
			return float64(clock(unix.CLOCK_THREAD_CPUTIME_ID)-begin) / many
		}
	}
	b.Run("tick", func(b *testing.B) {
		runtime.LockOSThread() // so that its CPU time can be read
		defer runtime.UnlockOSThread()
		compare(b, side{"CPU for a cgroup in a bare loop", each(read)}, side{"by the sampler", each(tick)})
	})
	// At most 7 % of a core at ten ticks per second.
	for name, skip := range map[string]time.Duration{"10Hz": 0, "10Hz-idle-once-a-second": time.Second} {
		b.Run(name, func(b *testing.B) {
			system.SkipIdle(skip)
			var failed error
			begin, used := time.Now(), clock(unix.CLOCK_PROCESS_CPUTIME_ID)
			s := sampler.Start(100*time.Millisecond, func(int64) {
				if err := tick(); err != nil {
					failed = err
				}
			})
			waiting(b, 10*time.Second)
			r := s.Stop()
			must.OK(b, failed)
			took := float64(time.Since(begin))
			b.ReportMetric(100*float64(r.OwnCPU)/took, "core-%")
			b.ReportMetric(100*float64(clock(unix.CLOCK_PROCESS_CPUTIME_ID)-used)/took, "core-%-of-all")
			b.ReportMetric(float64(r.Missed), "missed")
		})
	}
}

// meter reads all cgroups at a tick, like the sampler of a run.
func meter(b *testing.B, paths []string) (*cgroupstat.System, func() error) {
	b.Helper()
	system := must.Get(cgroupstat.Open(""))(b)
	b.Cleanup(system.Close)
	var all []*cgroupstat.Group
	for _, path := range paths {
		g := must.Get(system.Group(path))(b)
		b.Cleanup(g.Close)
		all = append(all, g)
	}
	var last cgroupstat.Sample
	return system, func() error {
		for i, g := range all {
			if err := g.Sample(&last); err != nil || !last.HaveMemory || !last.HaveCPU {
				return fmt.Errorf("a sample of %s lacks memory or CPU time: %w", paths[i], err)
			}
		}
		return nil
	}
}

func clock(id int32) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // every kernel reports CPU time
	return t.Nano()
}

// BenchmarkTop runs tare top on 500 containers. Each is a sleeping process in its own pid
// namespace and cgroups, with a process named like a shim. tare may use at most 3 % of a
// core at one refresh per second.
func BenchmarkTop(b *testing.B) {
	hs, paths := groups(b)
	dir := b.TempDir()
	must.OK(b, probe.Install(dir))
	program := filepath.Join(dir, probe.Name)
	start := func(command *exec.Cmd) int {
		out := must.Get(command.StdoutPipe())(b)
		must.OK(b, command.Start())
		b.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		n, err := out.Read(make([]byte, 256))
		must.That(b, n != 0, "%s printed nothing: %v", command, err)
		return command.Process.Pid
	}
	for _, path := range paths {
		name := filepath.Base(path)
		first := exec.Command(program, name)
		first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
		pid := start(first)
		for _, h := range hs {
			must.OK(b, os.WriteFile(filepath.Join(h.Mount, path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644))
		}
		start(&exec.Cmd{Path: program, Args: []string{"containerd-shim-runc-v2", "-id=" + name}})
	}
	drawn(b, 160, "top")
}

// BenchmarkList runs tare bpf list on 200 programs with two maps each. Live mode may use
// at most 0.5 % of a core at one refresh per second. A single listing, without the
// holders of objects, may use at most 28 ms of CPU time; it is compared with equivalent
// bpftool commands.
func BenchmarkList(b *testing.B) {
	need.Root(b)
	for i := range 200 {
		var body asm.Instructions
		for j := range 2 {
			m := must.Get(ebpf.NewMap(&ebpf.MapSpec{Name: fmt.Sprintf("tare_b%d_%d", i, j), Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}))(b)
			b.Cleanup(func() { m.Close() })
			body = append(body, asm.LoadMapPtr(asm.R1, m.FD()))
		}
		body = append(body, asm.Mov.Imm(asm.R0, 0), asm.Return())
		p := must.Get(ebpf.NewProgram(&ebpf.ProgramSpec{Name: fmt.Sprintf("tare_b%d", i), Type: ebpf.SocketFilter, Instructions: body, License: "GPL"}))(b)
		b.Cleanup(func() { p.Close() })
	}
	b.Run("live", func(b *testing.B) { drawn(b, 200, "bpf", "list", "--watch", "--interval", "1s") })
	b.Run("once", func(b *testing.B) {
		bpftool, err := exec.LookPath("bpftool")
		if err != nil {
			b.Skip(err)
		}
		all := func() (sum float64) {
			for _, what := range []string{"prog show", "map show", "link show", "cgroup tree"} {
				sum += cpu(b, exec.Command(bpftool, append([]string{"-j"}, strings.Fields(what)...)...))
			}
			return sum
		}
		compare(b, side{"bpftool, four times", all}, side{"the same again (A/A)", all},
			side{"tare bpf list --interval 0", func() float64 { return cpu(b, tare(b, "bpf", "list", "--interval", "0")) }},
			side{"tare bpf list", func() float64 { return cpu(b, tare(b, "bpf", "list")) }})
	})
}

// drawn returns the usage of a tare that draws on a terminal of a given width, see
// pts(4).
func drawn(b *testing.B, columns uint16, args ...string) {
	b.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must.OK(b, err)
	defer person.Close()
	fd := int(person.Fd())
	n := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(b)
	must.OK(b, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	must.OK(b, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 50}))
	terminal := must.Get(os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0))(b)
	command := tare(b, args...)
	command.Env = append(command.Environ(), "TERM=xterm")
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = command.Start()
	terminal.Close()
	must.OK(b, err)
	var bytes int64
	var read sync.WaitGroup
	read.Go(func() { bytes, _ = io.Copy(io.Discard, person) }) // ends with EIO when the terminal is closed
	pid := command.Process.Pid
	waiting(b, 5*time.Second) // until it has started
	id := must.Get(procs.Identify(pid))(b)
	before := must.Get(id.CPU())(b)
	begin := time.Now()
	waiting(b, 20*time.Second)
	after := must.Get(id.CPU())(b)
	b.ReportMetric(100*float64(after-before)/float64(time.Since(begin)), "core-%")
	b.ReportMetric(resident(b, pid), "KiB")
	_, err = person.Write([]byte("q"))
	must.OK(b, err)
	must.OK(b, command.Wait())
	read.Wait()
	b.ReportMetric(float64(bytes), "B-drawn")
}

// resident returns the resident memory of a process in KiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	d := must.Get(new(procs.Reader).Open(pid))(b)
	defer d.Close()
	m := must.Get(d.Memory())(b)
	return float64(m.RSS >> 10)
}
