package proctree

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
)

// command is an executed command.
type command struct {
	base   string   // program without directory; "" for the caller itself (/proc/self/exe)
	path   string   // path used in the call
	rest   []string // the arguments after it
	cut    bool     // rest is incomplete
	script bool     // run by an interpreter
	gone   bool     // the process ended before its arguments could be read
	cni    tracer.CNI
}

// initial reports whether a runtime executes itself as the init of a container. This
// is "runc init", or a copy of the runtime with unreadable arguments.
func (c *command) initial() bool {
	if c.gone {
		return c.base == "" && strings.HasPrefix(c.path, "/proc/self/")
	}
	return len(c.rest) == 1 && c.rest[0] == "init"
}

// read returns the command of an exec event. Its name is the first argument, which
// engines set, or else the file name. For a dynamic linker or an interpreter it is the
// name of the program or script in the arguments.
func read(e *tracer.Event) command {
	c := command{path: e.File, cut: e.Cut, gone: e.Cut && len(e.Args) == 0, cni: e.CNI}
	if len(e.Args) > 0 {
		c.rest = e.Args[1:]
		if name := e.Args[0]; plausible(strings.TrimPrefix(name, "-")) { // not a display text set by the process
			c.path = name
		}
	}
	c.base = path.Base(c.path)
	if i := procs.LinkedProgram(c.base, c.rest); i >= 0 && plausible(c.rest[i]) {
		c.path, c.base, c.rest = c.rest[i], path.Base(c.rest[i]), c.rest[i+1:]
	}
	c.interpreted()
	switch c.base {
	case "exe", ".", "/", "":
		c.base = ""
	default:
		c.base = strings.TrimPrefix(c.base, "-") // a login shell
		if strings.HasPrefix(c.path, "/proc/") && strings.Trim(c.base, "0123456789") == "" {
			c.base = "" // /proc/self/fd/7
		}
	}
	if c.base = clean(c.base); c.base == "" && !strings.HasPrefix(c.path, "/proc/") && path.Base(c.path) != "exe" {
		c.base = clean(e.Comm)
	}
	return c
}

// clean removes unprintable characters from a name and limits it to 64 bytes.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s[:min(len(s), 256)])
	return strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), 64)], "")) // without a partial character
}

// container returns s if it is a valid container id, else "". Runtimes allow letters,
// digits and "_+-."; see validateID in runc.
func container(s string) string {
	if s == "." || s == ".." || len(s) > 256 || !validID.MatchString(s) {
		return ""
	}
	return s
}

var validID = regexp.MustCompile(`^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$`)
