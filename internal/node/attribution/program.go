package attribution

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// command returns a process's program and its arguments without a dynamic linker.
func (p *Process) command() (string, []string) {
	if len(p.Args) == 0 {
		return "", nil
	}
	return procs.SkipLinker(p.name(), p.Args[1:])
}

// helperRole returns the role of a shim, monitor, VMM or virtiofsd, "" for any other process
// and for nil. The role follows from the first argument, from vCPUs, or from the program's
// file.
func (p *Process) helperRole() record.Role {
	switch {
	case p == nil || len(p.Args) == 0:
		return ""
	case p.guest:
		return cmp.Or(procs.HelperRole(p.name(), p.Args[1:]), record.RoleVMM)
	}
	return cmp.Or(procs.HelperRole(p.name(), p.Args[1:]), procs.HelperRole(filepath.Base(p.Exe), nil))
}

// gVisorRole returns the role of runsc's sentry or gofer, and "" for any other process. It
// compares the name and the program's file.
func (p *Process) gVisorRole() record.Role {
	name, args := p.command()
	if filepath.Base(p.Exe) == "runsc" && procs.RoleOf(name) == "" {
		name = "runsc"
	}
	return procs.GVisorRole(name, args)
}

// role returns the role of a process that serves a sandbox, "" for any other.
func (p *Process) role() record.Role { return cmp.Or(p.gVisorRole(), p.helperRole()) }

// isCommand reports whether a process is a command of a runtime or an engine.
func (p *Process) isCommand() bool {
	name, _ := p.command()
	return procs.IsCommand(name)
}

// isInit reports whether a process is a runtime's init, which is about to execute the
// container's program: "runc init", or youki's, which has only a name.
func (p *Process) isInit() bool {
	name, args := p.command()
	return name == "runc" && len(args) == 1 && args[0] == "init" ||
		strings.HasPrefix(p.Comm, "runc:[") || strings.HasPrefix(p.Comm, "youki:[")
}

// isLane reports whether a process is one of tare's lanes, see package lane.
func (p *Process) isLane() bool { return len(p.Args) > 0 && p.Args[0] == "tare-lane" }

// isPause reports whether the name of a process is that of a pause program.
func (p *Process) isPause() bool {
	name, args := p.command()
	return procs.RoleOf(name) == record.RolePause || name == "catatonit" && len(args) > 0 && args[0] == "-P"
}

// vCPU matches the names of vCPU threads: QEMU (only with -name …,debug-threads=on) and
// StratoVirt "CPU 0/KVM", cloud-hypervisor "vcpu0", Firecracker "fc_vcpu 0", Dragonball
// "db_vcpu0".
var vCPU = regexp.MustCompile(`^(CPU [0-9]+/[A-Z]+|(fc_|db_)?vcpu ?[0-9]+)$`)

// servedContainer returns the container id and the probable engine, from the arguments
// of a shim, monitor, VMM, virtiofsd, sentry or gofer.
func (p *Process) servedContainer() (id string, of guess) {
	name, args := p.command()
	role := p.role()
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

// kataID returns the sandbox id among the arguments of Kata's VMM or virtiofsd:
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
