package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Kernel tests kernel features that no file reports. Each method makes the named call,
// undoes it at once, and returns its error.
type Kernel interface {
	EffectiveUID() int
	LoadBPF() error        // the smallest program; Linux 3.18
	EnableBPFStats() error // by file descriptor; Linux 5.8
	OpenPerfClock() error  // a software event of this process; Linux 2.6.31
	OpenPerfCycles() error // a hardware event of this process
	SetRealtime() error    // SCHED_FIFO for one thread
	FreeDisk(dir string) (bytes uint64, err error)
	Wait(time.Duration)
}

// running is the running kernel.
type running struct{}

func (running) EffectiveUID() int { return os.Geteuid() }

func (running) Wait(d time.Duration) { time.Sleep(d) }

func (running) LoadBPF() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "GPL", // the type that needs the fewest privileges
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return p.Close()
}

func (running) EnableBPFStats() error {
	c, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return err
	}
	return c.Close()
}

func (running) OpenPerfClock() error {
	return openPerf(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK)
}

func (running) OpenPerfCycles() error {
	return openPerf(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES)
}

func openPerf(kind uint32, config uint64) error {
	attr := unix.PerfEventAttr{Type: kind, Config: config, Bits: unix.PerfBitDisabled}
	attr.Size = uint32(unsafe.Sizeof(attr))
	const self, anyCPU, noGroup = 0, -1, -1
	fd, err := unix.PerfEventOpen(&attr, self, anyCPU, noGroup, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// SetRealtime uses a separate thread. If its attributes cannot be restored, the thread ends
// with the goroutine.
func (running) SetRealtime() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		before, err := unix.SchedGetAttr(0, 0)
		if err == nil {
			err = unix.SchedSetAttr(0, realtime(), 0)
		}
		if err != nil || unix.SchedSetAttr(0, before, 0) == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

// realtime returns the lowest real-time priority. Child threads do not inherit it.
func realtime() *unix.SchedAttr {
	return &unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
		Priority: 1,
	}
}

// said formats an error with its symbol, "EPERM: operation not permitted", so that it can
// be looked up.
func said(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return unix.ErrnoName(errno) + ": " + errno.Error()
	}
	return err.Error()
}

// FreeDisk returns the bytes available to users on the file system of a folder, which may
// not exist yet.
func (running) FreeDisk(dir string) (bytes uint64, err error) {
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if err == nil {
			return fs.Bavail * uint64(fs.Frsize), nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, unix.ENOENT) || parent == dir {
			return 0, fmt.Errorf("statfs %s: %w", dir, err)
		}
		dir = parent
	}
}
