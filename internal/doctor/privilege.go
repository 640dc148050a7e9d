package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func (s *subject) privileges() []facility {
	list := []facility{{AreaPrivilege, "root", (*subject).rootUser}}
	if err := s.capabilitiesErr; err != nil {
		list = append(list, facility{AreaPrivilege, "capabilities", func(_ *subject, c *Check) { c.unread(err) }})
	} else {
		for _, use := range capabilityUses {
			list = append(list, facility{AreaPrivilege, use.name, use.look})
		}
	}
	return append(list, facility{AreaPrivilege, "real-time priority", (*subject).realtime})
}

func (s *subject) rootUser(c *Check) {
	c.Version = fmt.Sprintf("uid %d", s.uid)
	switch {
	case s.uid != 0:
		c.is(Missing, "runtimes, the floor and cgroups need root; only the host can be measured", s.elevate())
	case !s.wholeUserNamespace():
		c.is(Limited, "root only inside a user namespace: mounts, cgroups and BPF need permissions of the outer root", "")
	default:
		c.Why = "required by runtimes, the floor and cgroups"
	}
}

// wholeUserNamespace reports whether uids in the user namespace of this process are those of
// the machine. A kernel without user namespaces has no uid_map.
func (s *subject) wholeUserNamespace() bool {
	line, err := s.root.FirstLine("/proc/self/uid_map", 256)
	return err != nil || slices.Equal(strings.Fields(line), []string{"0", "0", "4294967295"})
}

// capability is a capability with tare's use for it.
type capability struct {
	name   string
	use    string
	within string // another capability that the kernel accepts instead
	lack   Status
}

// capabilityUses are ordered by the effect of a missing capability.
var capabilityUses = []capability{
	{"CAP_SYS_ADMIN", "creates the namespaces and mounts of the floor and of every runtime", "", Missing},
	{"CAP_SYS_CHROOT", "enters a container's root and mount namespace", "", Missing},
	{"CAP_SYS_RESOURCE", "lowers oom_score_adj and raises limits, as containerd and CRI-O do for every pod", "", Limited},
	{"CAP_SYS_NICE", "gives lanes real-time priority, so that events are timestamped without delay", "", Limited},
	{"CAP_NET_ADMIN", "creates the networks of pods, attaches BPF programs to cgroups and devices", "", Limited},
	{"CAP_BPF", "loads BPF programs and reads their statistics", "CAP_SYS_ADMIN", Limited},
	{"CAP_PERFMON", "traces with BPF, and counts events of other processes", "CAP_SYS_ADMIN", Limited},
	{"CAP_SYS_PTRACE", "reads the memory maps of other users' processes for the ledger", "", Limited},
	{"CAP_KILL", "ends workloads that run as another user", "", Limited},
	{"CAP_SETUID", "runs workloads as another user", "", Limited},
	{"CAP_MKNOD", "creates the device files of a container", "", Limited},
}

func (use capability) look(s *subject, c *Check) {
	has, known := s.capabilities.Has(use.name)
	within, _ := s.capabilities.Has(use.within)
	c.Why = use.use
	switch {
	case !known: // CAP_BPF and CAP_PERFMON before Linux 5.8
		c.Status = absent
	case has:
	case within:
		c.Why += "; " + use.within + " includes it"
	default:
		c.is(use.lack, use.use+"; "+s.whyWithheld(use.name), s.elevate())
	}
}

func (s *subject) whyWithheld(name string) string {
	if s.uid != 0 {
		return "this user lacks it"
	}
	if s.capabilities.Grantable(name) {
		return "it is in the bounding set, but a parent process dropped it"
	}
	return "it is outside the bounding set: grant it when starting this machine or container (docker run --cap-add=" +
		strings.TrimPrefix(name, "CAP_") + ")"
}

func (s *subject) realtime(c *Check) {
	err := s.kernel.SetRealtime()
	if err == nil {
		c.Why = "SCHED_FIFO was set on one thread and reset"
		return
	}
	c.is(Limited, fmt.Sprintf("SCHED_FIFO was denied (%s); timestamps are taken at normal priority, and late if all CPUs are busy", said(err)), "")
	nice, _ := s.capabilities.Has("CAP_SYS_NICE")
	switch {
	case !nice:
		c.Fix = s.elevate()
	case errors.Is(err, unix.EPERM):
		// With CONFIG_RT_GROUP_SCHED a cgroup has no real-time budget by default. It needs
		// none if the limit is disabled globally.
		c.Why += "; this cgroup has no real-time budget"
		c.Fix = "sysctl -w kernel.sched_rt_runtime_us=-1"
	}
}
