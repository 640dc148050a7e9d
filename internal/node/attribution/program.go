package attribution

import (
	"path/filepath"
	"regexp"
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

// role is whose cost a process is that stands beside containers, by the first argument,
// by the guest that it runs, or by the program's file.
func (p *Process) role() (record.Role, bool) {
	if len(p.Args) == 0 {
		return "", false
	}
	if role, ok := procs.Beside(p.name(), p.Args[1:]); ok {
		return role, ok
	}
	if p.guest {
		return record.RoleVMM, true
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

// about is the role of a process that is there for containers, in a sandbox of gVisor's or
// not.
func (p *Process) about() (record.Role, bool) {
	if role, ok := p.gVisor(); ok {
		return role, true
	}
	return p.role()
}

// isCommand tells whether a process is a runtime's or an engine's command.
func (p *Process) isCommand() bool {
	name, _ := p.command()
	return procs.IsCommand(name)
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
	role, beside := p.about()
	if id := procs.ContainerOf(name, role, args); id != "" {
		return id, known(id)
	}
	if !beside && p.isCommand() {
		for _, arg := range args {
			if known(arg) {
				return arg, true
			}
		}
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

// serves reads from a process's arguments which container it stands beside, and
// which engine that is likely to be.
func (p *Process) serves() (id string, of guess) {
	name, args := p.command()
	role, _ := p.about()
	id = procs.ContainerOf(name, role, args)
	switch role {
	case record.RoleSentry, record.RoleGofer:
		return id, guess{"gvisor", "runsc's sentry", rankNamespace}
	case record.RoleShim:
		switch {
		case name == "isulad-shim":
			return id, guess{"isula", "isulad-shim", rankArgument}
		case strings.Contains(name, "kata"):
			return id, guess{"kata", "Kata's shim", rankArgument + 1}
		case procs.Flag(args, "-namespace", "--namespace") == "moby":
			return id, guess{"docker", "a shim in containerd's namespace moby", rankArgument}
		}
		return id, guess{"containerd", "a shim of containerd's", rankProgram}
	case record.RoleMonitor:
		switch all := strings.Join(args, " "); {
		case strings.Contains(all, "crio"):
			return id, guess{"cri-o", "conmon with folders of CRI-O's", rankArgument}
		case strings.Contains(procs.Flag(args, "--exit-command"), "podman"):
			return id, guess{"podman", "conmon that calls podman at the end", rankArgument}
		}
		return id, guess{"podman", "conmon", rankNamespace}
	case record.RoleVMM, record.RoleVirtiofs:
		return kataID(args), guess{"kata", "a VMM or virtiofsd with folders of Kata's", rankProgram}
	}
	return "", guess{}
}

// kataID finds the sandbox in the arguments of a VMM or virtiofsd of Kata's:
// /run/vc/vm/ID/…, /run/kata-containers/shared/sandboxes/ID/…, /run/kata/ID/…,
// -name sandbox-ID.
func kataID(args []string) string {
	for _, arg := range args {
		for _, before := range []string{"/vc/vm/", "/sandboxes/", "/run/kata/", "/vc/firecracker/"} {
			if _, rest, ok := strings.Cut(arg, before); ok {
				if id := rest[:strings.IndexFunc(rest+"/", procs.NotOfID)]; id != "" {
					return id
				}
			}
		}
	}
	if id, ok := strings.CutPrefix(procs.Flag(args, "-name"), "sandbox-"); ok {
		id, _, _ = strings.Cut(id, ",")
		return id
	}
	return ""
}
