package bpfstat

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// errUnsupported says that this kernel, or what this process may do, does not let
// programs be seen. Errors that match it say which, and what would change it.
var errUnsupported = errors.New("BPF programs cannot be seen here")

// unsupported is what an error of bpf(2) means where something is asked for that
// needs a kernel of that version and CAP_SYS_ADMIN. All others are given back.
func unsupported(what, version string, err error) error {
	why := ""
	switch {
	case errors.Is(err, unix.ENOSYS):
		why = "this kernel has no BPF system call (CONFIG_BPF_SYSCALL), or a seccomp filter hides it"
	case errors.Is(err, unix.EINVAL):
		why = "this kernel does not know how; it takes Linux " + version
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		why = denied()
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %s: %w: %s", errUnsupported, what, err, why)
}

// denied says what is missing. The kernel asks for CAP_SYS_ADMIN of the machine's
// own user namespace (bpf_obj_get_next_id, bpf_enable_stats in
// kernel/bpf/syscall.c): CAP_BPF and CAP_PERFMON are not enough.
func denied() string {
	c, err := machine.Root("").Capabilities()
	if err != nil {
		return "it needs CAP_SYS_ADMIN; run it as root"
	}
	if has, _ := c.Has("CAP_SYS_ADMIN"); !has {
		return "CAP_SYS_ADMIN is missing, which the kernel asks for to walk the ids of all programs (CAP_BPF and CAP_PERFMON are not enough for that); run it as root or with that capability"
	}
	return "CAP_SYS_ADMIN is in force, and still the kernel refuses: this is a user namespace of its own (a rootless container), a seccomp filter, or a security module such as lockdown; run it on the host itself"
}
