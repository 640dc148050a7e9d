package bpfstat

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// errUnsupported is matched by errors caused by the kernel or by missing capabilities.
var errUnsupported = errors.New("BPF programs cannot be seen here")

// unsupported explains an error of bpf(2) for a command that requires a kernel version
// and CAP_SYS_ADMIN. Other errors are only wrapped.
func unsupported(what, version string, err error) error {
	why := ""
	switch {
	case errors.Is(err, unix.ENOSYS):
		why = "this kernel has no BPF system call (CONFIG_BPF_SYSCALL), or a seccomp filter hides it"
	case errors.Is(err, unix.EINVAL):
		why = "this kernel does not support it; it needs Linux " + version
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		why = denied()
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %s: %w: %s", errUnsupported, what, err, why)
}

// denied describes what is missing. The kernel requires CAP_SYS_ADMIN in the initial
// user namespace (bpf_obj_get_next_id, bpf_enable_stats in kernel/bpf/syscall.c).
// CAP_BPF and CAP_PERFMON are not enough.
func denied() string {
	c, err := machine.Root("").Capabilities()
	if err != nil {
		return "it needs CAP_SYS_ADMIN; run it as root"
	}
	if has, _ := c.Has("CAP_SYS_ADMIN"); !has {
		return "CAP_SYS_ADMIN is missing, which the kernel asks for to walk the ids of all programs (CAP_BPF and CAP_PERFMON are not enough for that); run it as root or with that capability"
	}
	return "the kernel refuses despite CAP_SYS_ADMIN: this is a separate user namespace (a rootless container), a seccomp filter, or a security module such as lockdown; run it on the host itself"
}
