package attribution

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// RoleOf tells by its program whose cost a process is that stands beside
// containers: shims, monitors, VMMs, virtiofsd. Name is the base name of its
// first argument, args are those after it. A program that was started through
// its own dynamic linker, as some installations do, is looked for behind that
// one's options. ok is false for any other program.
func RoleOf(name string, args []string) (role record.Role, ok bool) {
	name, _ = program(name, args)
	switch {
	case strings.HasPrefix(name, "containerd-shim"), name == "isulad-shim":
		return record.RoleShim, true
	case name == "conmon", name == "conmonrs":
		return record.RoleMonitor, true
	case strings.HasPrefix(name, "qemu-system-"), name == "qemu-kvm", name == "qemu-lite", name == "cloud-hypervisor", name == "firecracker", name == "stratovirt", name == "jailer":
		return record.RoleVMM, true
	case name == "virtiofsd", name == "virtiofsd-rs":
		return record.RoleVirtiofs, true
	}
	return "", false
}

// Linker tells by its name whether a program is a dynamic linker.
func Linker(name string) bool { return strings.HasPrefix(name, "ld-linux") || name == "ld.so" }

// program looks behind a dynamic linker: the program that it was told to run,
// and that one's arguments.
func program(name string, args []string) (string, []string) {
	if !Linker(name) {
		return name, args
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			i++ // each has a value, see ld.so(8)
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return filepath.Base(args[i]), args[i+1:]
		}
	}
	return name, nil
}

// command is a process's program and its arguments, a dynamic linker left out.
func (p *Process) command() (string, []string) {
	if len(p.Args) == 0 {
		return "", nil
	}
	return program(p.name(), p.Args[1:])
}

// role is RoleOf, by the first argument or by the program's file.
func (p *Process) role() (record.Role, bool) {
	if len(p.Args) == 0 {
		return "", false
	}
	if role, ok := RoleOf(p.name(), p.Args[1:]); ok {
		return role, ok
	}
	return RoleOf(filepath.Base(p.Exe), nil)
}

// gVisor tells runsc's own processes apart: the sentry runs "boot", the file
// server "gofer". They name themselves runsc-sandbox and runsc-gofer.
func (p *Process) gVisor() (record.Role, bool) {
	name, args := p.command()
	switch name {
	case "runsc-sandbox":
		return record.RoleSentry, true
	case "runsc-gofer":
		return record.RoleGofer, true
	}
	if name != "runsc" && filepath.Base(p.Exe) != "runsc" {
		return "", false
	}
	for _, arg := range args { // its flags are --name=value, or --name value
		switch arg {
		case "boot":
			return record.RoleSentry, true
		case "gofer", "umount":
			return record.RoleGofer, true
		case "exec", "run", "create", "start", "wait", "delete", "kill":
			return "", false
		}
	}
	return "", false
}

// commands are programs that serve a container for a while: an exec session, a
// start, a removal.
var commands = []string{
	"runc", "crun", "youki", "runsc", "kata-runtime", "docker", "podman", "nerdctl", "ctr", "crictl", "isula",
}

// isCommand tells whether a process is a runtime's or an engine's command.
func (p *Process) isCommand() bool {
	name, _ := p.command()
	return slices.Contains(commands, name)
}

// isInit tells whether a process is a runtime's own that is about to become a
// container's: "runc init", and youki's, which shows by its name alone.
func (p *Process) isInit() bool {
	name, args := p.command()
	return name == "runc" && len(args) == 1 && args[0] == "init" ||
		strings.HasPrefix(p.Comm, "runc:[") || strings.HasPrefix(p.Comm, "youki:[")
}

// isPause tells by its name whether a process does nothing but hold a pod.
func (p *Process) isPause() bool {
	name, args := p.command()
	return name == "pause" || name == "catatonit" && len(args) > 0 && args[0] == "-P"
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
		for _, part := range strings.FieldsFunc(arg, separator) {
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

func separator(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}
