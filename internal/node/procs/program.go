package procs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// programs says whose cost a program is, by its name: what serves all containers,
// what stands beside one, and what makes them. A name that ends in "*" stands for
// all that begin so. What an id in the arguments decides is not here.
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

// Named is the role of a program with a name, "" for none.
func Named(name string) record.Role {
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

// commands are programs that work on a container for a while, beside the OCI runtimes: an
// exec session, a start, a removal.
var commands = []string{"kata-runtime", "docker", "podman", "nerdctl", "ctr", "crictl", "isula"}

// IsCommand reports by its name whether a program is a runtime's or an engine's command.
func IsCommand(name string) bool {
	return slices.Contains(Runtimes, name) || slices.Contains(commands, name)
}

// Beside tells by its program whose cost a process is that stands beside
// containers: shims, monitors, VMMs, virtiofsd. Name is the base name of its
// first argument, args are those after it. ok is false for any other program.
func Beside(name string, args []string) (role record.Role, ok bool) {
	name, _ = Behind(name, args)
	switch role = Named(name); role {
	case record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs:
		return role, true
	}
	return "", false
}

// Behind looks behind a dynamic linker, through which some installations start
// their programs: the program that it was told to run, and that one's arguments.
func Behind(name string, args []string) (string, []string) {
	if at := Linked(name, args); at >= 0 {
		return filepath.Base(args[at]), args[at+1:]
	}
	return name, args
}

// Linked is which of a dynamic linker's arguments is the program that it runs, -1
// where the program is no such linker, or was given none.
func Linked(name string, args []string) int {
	if !strings.HasPrefix(name, "ld-linux") && name != "ld.so" {
		return -1
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			i++ // each has a value, see ld.so(8)
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return i
		}
	}
	return -1
}

// GVisor tells runsc's own processes apart: the sentry runs "boot", the file
// server "gofer". They name themselves runsc-sandbox and runsc-gofer.
func GVisor(name string, args []string) (record.Role, bool) {
	if role := Named(name); role == record.RoleSentry || role == record.RoleGofer {
		return role, true
	}
	if name != "runsc" && !strings.HasPrefix(name, "runsc-") {
		return "", false
	}
	for _, arg := range args { // its flags are --name=value, or --name value
		switch arg {
		case "boot":
			return record.RoleSentry, true
		case "gofer", "umount":
			return record.RoleGofer, true
		case "create", "run", "start", "exec", "wait", "kill", "delete", "state", "do":
			return "", false
		}
	}
	return "", false
}

// ContainerOf is the id of the container among the arguments of a shim, a monitor, or one
// of runsc's own, "" of others and where there is none.
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

// Flag returns the value of a flag in an argument list, as "-id X" and as "-id=X",
// "" for none; of several the last, as programs take them.
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

// Found is a process with its program and its arguments.
type Found struct {
	Pid  int
	Name string // base name of the program, from its first argument
	Args []string
	Role record.Role // "" for none that is known
}

// Programs are the processes of this machine that have a program, by pid.
func Programs() []Found {
	var out []Found
	for _, pid := range All() {
		if args := ArgsOf(pid); len(args) > 0 {
			f := Found{Pid: pid, Name: filepath.Base(args[0]), Args: args[1:]}
			name, _ := Behind(f.Name, f.Args)
			f.Role = Named(name)
			out = append(out, f)
		}
	}
	return out
}

// Name is the base name of a process's program, "" where it is not known.
func Name(pid int) string {
	if args := ArgsOf(pid); len(args) > 0 {
		return filepath.Base(args[0])
	}
	return ""
}

// Mentioning returns the processes that stand beside containers and have one of
// the ids in an argument: alone, or as a part of it between characters that cannot
// be in an id ("…/ID/config" and "name=ID" are, "sandbox-ID" is not).
func Mentioning(ids []string) []Found {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 {
		return nil
	}
	return slices.DeleteFunc(Programs(), func(f Found) bool {
		_, ok := Beside(f.Name, f.Args)
		return !ok || !slices.ContainsFunc(f.Args, func(arg string) bool {
			return slices.ContainsFunc(Parts(arg), func(part string) bool { return slices.Contains(ids, part) })
		})
	})
}

// Parts are the parts of an argument that can be ids of containers.
func Parts(arg string) []string { return strings.FieldsFunc(arg, NotOfID) }

// NotOfID tells whether a character cannot be in a container's id.
func NotOfID(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}
