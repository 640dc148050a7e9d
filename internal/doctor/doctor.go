// Package doctor says what can be weighed on a machine, what cannot, and the
// one command that would change it.
//
// Where the kernel has to be asked, it is asked by doing: a BPF program is
// loaded, a thread is made real-time for a moment. A flag in a file says what
// should work; seccomp filters, lockdown and containers decide what does.
// Everything that is tried is undone at once, and nothing is left changed.
package doctor

import (
	"os"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Status says how far something can be used.
type Status string

// The states of a check.
const (
	OK      Status = "ok"
	Limited Status = "limited" // works, but figures are fewer or less steady
	Missing Status = "missing" // what needs it is not weighed here
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
	Name string // what it is for: "run", "cache"
	Path string
}

// Option changes what Facilities looks at.
type Option func(*subject)

// WithFolders names the folders whose free space is looked at. Without it they
// are the system's temporary folder and the user's cache.
func WithFolders(folders ...Folder) Option {
	return func(s *subject) { s.folders = folders }
}

// WithKernel answers in place of the running kernel.
func WithKernel(k Kernel) Option {
	return func(s *subject) { s.kernel = k }
}

// Facilities looks at the machine below root, "" for the real one. It takes
// about a quarter of a second, most of it to watch for stolen time.
func Facilities(root string, options ...Option) []Check {
	s := &subject{root: machine.Root(root), kernel: running{}, folders: usualFolders()}
	for _, option := range options {
		option(s)
	}
	s.uid = s.kernel.EffectiveUID()
	s.capabilities, s.capabilitiesErr = s.root.Capabilities()

	var checks []Check
	checks = append(checks, s.privilege()...)
	checks = append(checks, s.features()...)
	checks = append(checks, s.hardware()...)
	return append(checks, s.resources()...)
}

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

func usualFolders() []Folder {
	folders := []Folder{{Name: "run", Path: os.TempDir()}}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, Folder{Name: "cache", Path: filepath.Join(cache, "tare")})
	}
	return folders
}

// elevate is the command that gives tare more rights, where one does: for root
// nothing does, as whoever started this process has withheld them.
func (s *subject) elevate() string {
	if s.uid != 0 {
		return "sudo tare doctor"
	}
	return ""
}

// firstOf returns the first text that says something.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
