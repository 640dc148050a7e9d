package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kernel answers what no file tells: whether a call works. Each method does
// what it is named for, undoes it at once, and returns what came back.
type Kernel interface {
	EffectiveUID() int
	LoadBPF() error        // the smallest program there is; Linux 3.18
	EnableBPFStats() error // by file descriptor; Linux 5.8
	OpenPerfClock() error  // a software event of our own; Linux 2.6.31
	OpenPerfCycles() error // a hardware event of our own
	SetRealtime() error    // SCHED_FIFO for one thread
	FreeDisk(dir string) (bytes uint64, err error)
	Wait(time.Duration)
}

// running is the kernel that runs this program.
type running struct{}

func (running) EffectiveUID() int { return os.Geteuid() }

func (running) Wait(d time.Duration) { time.Sleep(d) }

// bpfProgram is the part of union bpf_attr (linux/bpf.h) that BPF_PROG_LOAD
// has had from the beginning.
type bpfProgram struct {
	kind         uint32
	instructions uint32
	code         uint64
	license      uint64
	logLevel     uint32 // 0: the verifier writes none
	logSize      uint32
	log          uint64
}

// The kernel is given the addresses of these as numbers, which only stay right
// for what is neither on a stack nor on the heap.
var (
	bpfCode    = [16]byte{0: 0xb7, 8: 0x95} // r0 = 0; exit
	bpfLicense = [4]byte{'G', 'P', 'L', 0}
)

func (running) LoadBPF() error {
	const socketFilter = 1 // needs the fewest rights of all kinds
	attr := bpfProgram{
		kind:         socketFilter,
		instructions: uint32(len(bpfCode) / 8),
		code:         uint64(uintptr(unsafe.Pointer(&bpfCode))),
		license:      uint64(uintptr(unsafe.Pointer(&bpfLicense))),
	}
	return bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

func (running) EnableBPFStats() error {
	attr := struct{ kind uint32 }{unix.BPF_STATS_RUN_TIME}
	return bpf(unix.BPF_ENABLE_STATS, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// bpf makes the call and closes what it opened.
func bpf(command uintptr, attr unsafe.Pointer, size uintptr) error {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
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

// SetRealtime uses a thread of its own, which is given back only when it is
// what it was before; otherwise it ends with its goroutine.
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

// realtime is the lowest real-time priority. Threads that the Go runtime might
// start from this one don't inherit it.
func realtime() *unix.SchedAttr {
	return &unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
		Priority: 1,
	}
}

// said names an error as the kernel's documentation does, "EPERM: operation
// not permitted", so that it can be looked up.
func said(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno) + ": " + errno.Error()
	}
	return err.Error()
}

// FreeDisk returns what a user may still write to the file system that a
// folder is on, or will be on once it is made.
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
