// Package doctor checks what can be measured on a machine, what cannot, and which command
// would change that.
//
// It tests kernel features by using them: it loads a BPF program, or makes a thread
// real-time for a moment. Flags in files show what should work, but seccomp filters,
// lockdown and containers decide what does. Every test is undone at once.
package doctor

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Status is the degree to which something is usable.
type Status string

// The statuses of a check.
const (
	OK      Status = "ok"
	Limited Status = "limited" // works, but with fewer or less steady figures
	Missing Status = "missing" // measurements that need it are not possible here
	// NotTried: available, but nothing was started on it.
	NotTried Status = "not tried"
)

// Check is the result of one check. Its JSON form is stable.
type Check struct {
	Area    string `json:"area"` // "privilege", "kernel", "machine", "runtime", "engine", "load"
	Name    string `json:"name"`
	Version string `json:"version"` // or the kind, size or state
	Status  Status `json:"status"`
	Why     string `json:"why"` // purpose, or the result
	Fix     string `json:"fix"` // one command to paste, or ""
}

// The areas of checks. Callers add those of engines and runtimes.
const (
	AreaPrivilege = "privilege"
	AreaKernel    = "kernel"
	AreaMachine   = "machine"
	AreaRuntime   = "runtime"
	AreaEngine    = "engine"
	AreaLoad      = "load"
)

// Folder is a folder that tare writes to.
type Folder struct {
	Name    string // purpose: "run", "cache"
	Path    string
	Refusal error // why it is unusable, or nil
}

// Facilities checks this machine and the free space of the given folders. It takes about a
// quarter of a second, mostly to measure stolen time.
func Facilities(folders ...Folder) []Check { return facilities("", running{}, folders) }

func facilities(root machine.Root, kernel Kernel, folders []Folder) []Check {
	s := &subject{root: root, kernel: kernel, folders: folders}
	s.uid = s.kernel.EffectiveUID()
	s.capabilities, s.capabilitiesErr = s.root.Capabilities()

	var checks []Check
	for _, f := range slices.Concat(s.privileges(), features, hardware, s.resources()) {
		c := Check{Area: f.area, Name: f.name, Status: OK}
		if f.look(s, &c); c.Status != absent {
			checks = append(checks, c)
		}
	}
	return checks
}

// facility is a check. look gets a Check with status OK and changes it if necessary.
type facility struct {
	area, name string
	look       func(*subject, *Check)
}

// absent marks a feature that this machine lacks and does not need. It is not printed.
const absent Status = ""

// is sets the status, the reason and the fix.
func (c *Check) is(status Status, why, fix string) { c.Status, c.Why, c.Fix = status, why, fix }

// unread sets the status for an unreadable value.
func (c *Check) unread(err error) { c.is(Limited, fmt.Sprintf("could not be read: %v", err), "") }

// subject is the machine to check.
type subject struct {
	root    machine.Root
	kernel  Kernel
	folders []Folder

	uid             int
	capabilities    machine.Capabilities
	capabilitiesErr error
	config          map[string]string // of the kernel; see builtWithout
}

// elevate returns the command that gives tare more privileges. It returns "" for root, because
// then the parent of this process withheld the privileges.
func (s *subject) elevate() string {
	if s.uid != 0 {
		return "sudo tare doctor"
	}
	return ""
}
