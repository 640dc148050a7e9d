package procs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// programs maps names of programs to roles. A name that ends in "*" is a prefix.
var programs = []struct {
	role  record.Role
	names []string
}{
	{record.RoleDaemon, []string{"dockerd", "containerd", "docker-containerd", "crio", "isulad"}},
	{record.RoleShim, []string{"containerd-shim*", "isulad-shim"}},
	{record.RoleMonitor, []string{"conmon", "conmonrs"}},
	{record.RoleVMM, []string{"qemu-system-*", "qemu-kvm", "qemu-lite", "cloud-hypervisor", "firecracker", "jailer", "stratovirt", "crosvm"}},
	{record.RoleVirtiofs, []string{"virtiofsd", "virtiofsd-rs"}},
	{record.RoleSentry, []string{"runsc-sandbox"}},
	{record.RoleGofer, []string{"runsc-gofer"}},
	{record.RolePause, []string{"pause"}},
}

// RoleOf returns the role of a program by its name, or "".
func RoleOf(name string) record.Role {
	for _, p := range programs {
		for _, known := range p.names {
			if prefix, open := strings.CutSuffix(known, "*"); name == known || open && strings.HasPrefix(name, prefix) {
				return p.role
			}
		}
	}
	return ""
}

// Runtimes are the OCI runtimes by name.
var Runtimes = []string{"runc", "crun", "youki", "runsc", "railcar", "sysbox"}

// commands are programs, other than OCI runtimes, that run only for one action on a
// container, such as a start, an exec session or a removal.
var commands = []string{"kata-runtime", "docker", "podman", "nerdctl", "ctr", "crictl", "isula"}

// IsCommand reports whether a program of this name is the command of a runtime or engine.
func IsCommand(name string) bool {
	return slices.Contains(Runtimes, name) || slices.Contains(commands, name)
}

// HelperRole returns the role of a program that serves one sandbox: shim, monitor, VMM
// or virtiofsd, and "" for any other. Name is the base name of its first argument, args are
// those after it.
func HelperRole(name string, args []string) record.Role {
	name, _ = SkipLinker(name, args)
	switch role := RoleOf(name); role {
	case record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs:
		return role
	}
	return ""
}

// SkipLinker returns the program that a dynamic linker runs, with its arguments. Some
// installations start their programs through the linker. Any other program is returned
// as it is.
func SkipLinker(name string, args []string) (string, []string) {
	if at := LinkedProgram(name, args); at >= 0 {
		return filepath.Base(args[at]), args[at+1:]
	}
	return name, args
}

// LinkedProgram returns the index of the argument that names the program a dynamic linker
// runs. It returns -1 if the program is not a linker or runs none.
func LinkedProgram(name string, args []string) int {
	if !strings.HasPrefix(name, "ld-linux") && name != "ld.so" {
		return -1
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			i++ // these take a value, see ld.so(8)
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return i
		}
	}
	return -1
}

// GVisorRole returns the role of runsc's sentry and gofer. They run as "runsc boot" and
// "runsc gofer", and rename themselves to runsc-sandbox and runsc-gofer. It returns "" for
// any other program.
func GVisorRole(name string, args []string) record.Role {
	if name != "runsc" && !strings.HasPrefix(name, "runsc-") {
		return ""
	}
	if role := RoleOf(name); role != "" {
		return role
	}
	for _, arg := range args { // flags before the verb are --name=value or --name value
		switch arg {
		case "boot":
			return record.RoleSentry
		case "gofer", "umount":
			return record.RoleGofer
		case "create", "run", "start", "exec", "wait", "kill", "delete", "state", "do":
			return ""
		}
	}
	return ""
}

// ContainerOf returns the container id among the arguments of a shim, a monitor, a sentry
// or a gofer, or "".
func ContainerOf(name string, role record.Role, args []string) string {
	switch {
	case name == "isulad-shim" && len(args) > 0:
		return args[0]
	case role == record.RoleShim:
		return Flag(args, "-id", "--id")
	case role == record.RoleMonitor:
		return Flag(args, "-c", "--cid")
	case (role == record.RoleSentry || role == record.RoleGofer) && len(args) > 0:
		return args[len(args)-1]
	}
	return ""
}

// Flag returns the value of a flag in an argument list, given as "-id X" or "-id=X", or
// "". The last one wins.
func Flag(args []string, flags ...string) (value string) {
	for i, arg := range args {
		for _, f := range flags {
			if arg == f && i+1 < len(args) {
				value = args[i+1]
			} else if v, ok := strings.CutPrefix(arg, f+"="); ok {
				value = v
			}
		}
	}
	return value
}

// Found is a process with its program, arguments and role.
type Found struct {
	Pid  int
	Name string // base name of the program, from its first argument
	Args []string
	Role record.Role // "" if unknown
}

// Programs lists the processes of this machine that have a program, by pid.
func Programs() []Found {
	var out []Found
	for _, pid := range All() {
		if args := ArgsOf(pid); len(args) > 0 {
			f := Found{Pid: pid, Name: filepath.Base(args[0]), Args: args[1:]}
			name, _ := SkipLinker(f.Name, f.Args)
			f.Role = RoleOf(name)
			out = append(out, f)
		}
	}
	return out
}

// Name returns the base name of the program of a pid, or "".
func Name(pid int) string {
	if args := ArgsOf(pid); len(args) > 0 {
		return filepath.Base(args[0])
	}
	return ""
}

// Mentioning returns the shims, monitors, VMMs and virtiofsds with one of the ids in an
// argument, bounded by characters that ids cannot contain: "…/ID/config" and "name=ID"
// match, "sandbox-ID" does not.
func Mentioning(ids []string) []Found {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 {
		return nil
	}
	return slices.DeleteFunc(Programs(), func(f Found) bool {
		return HelperRole(f.Name, f.Args) == "" || !slices.ContainsFunc(f.Args, func(arg string) bool {
			return slices.ContainsFunc(Parts(arg), func(part string) bool { return slices.Contains(ids, part) })
		})
	})
}

// Parts returns the parts of an argument that can be container ids.
func Parts(arg string) []string { return strings.FieldsFunc(arg, NotOfID) }

// NotOfID reports whether a container id cannot contain the character.
func NotOfID(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}
