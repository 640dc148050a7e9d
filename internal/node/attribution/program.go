package attribution

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// command is a process's program and its arguments, a dynamic linker left out.
func (p *Process) command() (string, []string) {
	if len(p.Args) == 0 {
		return "", nil
	}
	return procs.Behind(p.name(), p.Args[1:])
}

// role is whose cost a process is that stands beside containers, by the first argument or by the program's file.
func (p *Process) role() (record.Role, bool) {
	if len(p.Args) == 0 {
		return "", false
	}
	if role, ok := procs.Beside(p.name(), p.Args[1:]); ok {
		return role, ok
	}
	return procs.Beside(filepath.Base(p.Exe), nil)
}

// gVisor tells runsc's sentry and file server, by their names or the program's
// file.
func (p *Process) gVisor() (record.Role, bool) {
	name, args := p.command()
	if filepath.Base(p.Exe) == "runsc" && procs.Named(name) == "" {
		name = "runsc"
	}
	return procs.GVisor(name, args)
}

// commands are programs that serve a container for a while: an exec session, a
// start, a removal.
var commands = []string{"kata-runtime", "docker", "podman", "nerdctl", "ctr", "crictl", "isula"}

// isCommand tells whether a process is a runtime's or an engine's command.
func (p *Process) isCommand() bool {
	name, _ := p.command()
	return slices.Contains(procs.Runtimes, name) || slices.Contains(commands, name)
}

// isInit tells whether a process is a runtime's own that is about to become a
// container's: "runc init", and youki's, which shows by its name alone.
func (p *Process) isInit() bool {
	name, args := p.command()
	return name == "runc" && len(args) == 1 && args[0] == "init" ||
		strings.HasPrefix(p.Comm, "runc:[") || strings.HasPrefix(p.Comm, "youki:[")
}

// isLane tells whether a process is one of tare's lanes, see package lane.
func (p *Process) isLane() bool { return len(p.Args) > 0 && p.Args[0] == "tare-lane" }

// isPause tells by its name whether a process does nothing but hold a pod.
func (p *Process) isPause() bool {
	name, args := p.command()
	return procs.Named(name) == record.RolePause || name == "catatonit" && len(args) > 0 && args[0] == "-P"
}

// vCPU is how VMMs name the threads that run a guest: QEMU (only with
// -name …,debug-threads=on) and StratoVirt "CPU 0/KVM", cloud-hypervisor
// "vcpu0", Firecracker "fc_vcpu 0", Dragonball "db_vcpu0".
var vCPU = regexp.MustCompile(`^(CPU [0-9]+/[A-Z]+|(fc_|db_)?vcpu ?[0-9]+)$`)

// mentions returns what of the process's arguments names a container, in the
// order of trust, for lookup in ids: the one flag where the program has one, the
// whole argument for a command, else every part of an argument between
// characters that cannot be in an id.
func (p *Process) mentions(known func(id string) bool) (string, bool) {
	name, args := p.command()
	role, beside := p.role()
	if _, ok := p.gVisor(); ok { // both end with the container's id
		if len(args) > 0 && known(args[len(args)-1]) {
			return args[len(args)-1], true
		}
		return "", false
	}
	switch {
	case strings.HasPrefix(name, "containerd-shim"):
		id := procs.Flag(args, "-id", "--id")
		return id, id != "" && known(id)
	case beside && role == record.RoleMonitor:
		if id := procs.Flag(args, "-c", "--cid"); id != "" {
			return id, known(id)
		}
	case p.isCommand():
		for _, arg := range args {
			if known(arg) {
				return arg, true
			}
		}
		return "", false
	}
	if !beside {
		return "", false
	}
	for _, arg := range args {
		for _, part := range procs.Parts(arg) {
			if known(part) {
				return part, true
			}
			// Kata names QEMU's machine so.
			if id, ok := strings.CutPrefix(part, "sandbox-"); ok && known(id) {
				return id, true
			}
		}
	}
	return "", false
}
