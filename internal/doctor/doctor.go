// Package doctor says what can be weighed on a machine, what cannot, and the
// one command that would change it.
//
// Where the kernel has to be asked, it is asked by doing: a BPF program is
// loaded, a thread is made real-time for a moment. A flag in a file says what
// should work; seccomp filters, lockdown and containers decide what does.
// Everything that is tried is undone at once, and nothing is left changed.
package doctor

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Status says how far something can be used.
type Status string

// The states of a check.
const (
	OK      Status = "ok"
	Limited Status = "limited" // works, but figures are fewer or less steady
	Missing Status = "missing" // what needs it is not weighed here
	// NotTried: it is there, and nothing was started on it.
	NotTried Status = "not tried"
)

// Check is one thing that was looked at. Its JSON form is stable.
type Check struct {
	Area    string `json:"area"` // "privilege", "kernel", "machine", "runtime", "engine", "load"
	Name    string `json:"name"`
	Version string `json:"version"` // or the kind, size or state that was found
	Status  Status `json:"status"`
	Why     string `json:"why"` // what it is for, or what came back
	Fix     string `json:"fix"` // one command to paste; "" where no command changes it
}

// The areas of the checks that this package makes. Whoever looks for engines
// and runtimes adds theirs under AreaRuntime.
const (
	AreaPrivilege = "privilege"
	AreaKernel    = "kernel"
	AreaMachine   = "machine"
	AreaRuntime   = "runtime"
	AreaEngine    = "engine"
	AreaLoad      = "load"
)

// Folder is a place that tare writes to.
type Folder struct {
	Name    string // what it is for: "run", "cache"
	Path    string
	Refusal error // why it is not used, or nil
}

// Facilities looks at this machine, and at the free space of these folders. It takes
// about a quarter of a second, most of it to watch for stolen time.
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

// facility is something to be looked at, and how: look is given a check that says OK,
// and changes what is otherwise.
type facility struct {
	area, name string
	look       func(*subject, *Check)
}

// absent is what this machine does not have and nobody misses: it is not told.
const absent Status = ""

// is says how far something can be used, why, and what would change it.
func (c *Check) is(status Status, why, fix string) { c.Status, c.Why, c.Fix = status, why, fix }

// unread says that nothing is known.
func (c *Check) unread(err error) { c.is(Limited, fmt.Sprintf("could not be read: %v", err), "") }

// subject is the machine that is looked at.
type subject struct {
	root    machine.Root
	kernel  Kernel
	folders []Folder

	uid             int
	capabilities    machine.Capabilities
	capabilitiesErr error
	config          map[string]string // of the kernel's build; see builtWithout
}

// elevate is the command that gives tare more rights, where one does: for root
// nothing does, as whoever started this process has withheld them.
func (s *subject) elevate() string {
	if s.uid != 0 {
		return "sudo tare doctor"
	}
	return ""
}
