package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// initialNamespace is PROC_PID_INIT_INO of linux/proc_ns.h, the inode of the initial
// pid namespace.
const initialNamespace = 0xEFFFFFFC

// initialPids returns an error outside of the initial pid namespace, because the
// kernel's events have pids of that namespace.
func initialPids() error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return fmt.Errorf("which pid namespace this is: %w", err)
	}
	if st.Ino != initialNamespace {
		return errors.New("tare runs in another pid namespace than the kernel's events: run it on the host, or in a container with the host's (--pid=host)")
	}
	return nil
}

// denied returns the likely reason why the kernel refused BPF.
func denied(err error) error {
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w (%w)", err, errUnsupported)
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if b, _ := os.ReadFile("/sys/kernel/security/lockdown"); strings.Contains(string(b), "[confidentiality]") {
		return fmt.Errorf("%w: the kernel is locked down (confidentiality) and lets no program read its memory: boot it with lockdown=integrity or without", err)
	}
	if missing := lacking(); len(missing) > 0 {
		return fmt.Errorf("%w: tare has no %s: run it as root, or give it %s", unix.EPERM, strings.Join(missing, " and no "), strings.Join(missing, " and "))
	}
	return err
}

// lacking returns the capabilities that BPF needs and this process lacks.
func lacking() []string {
	own, err := machine.Root("").Capabilities()
	if all, _ := own.Has("CAP_SYS_ADMIN"); err != nil || all {
		return nil
	}
	return slices.DeleteFunc(own.Missing(), func(name string) bool { return name != "CAP_BPF" && name != "CAP_PERFMON" })
}

// unlockMemory raises the limit of locked memory until restore is called.
func unlockMemory() (restore func(), err error) {
	var before unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, &before); err != nil {
		return nil, err
	}
	return func() { _ = unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &before, nil) }, nil
}
