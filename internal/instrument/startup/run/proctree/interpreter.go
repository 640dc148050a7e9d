package proctree

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// interpreter is a program that runs the file that its first argument names. Of
// its options those are listed that leave it at that. With any other one, such as
// -c, the program may stand among the arguments themselves, or whatever follows
// may be the option's value: then there is no script, and nothing of it is shown.
type interpreter struct {
	flags  string   // letters without a value
	values string   // letters with one: what else is in the argument, or the next argument
	joined string   // letters with one that stands in the same argument, or none
	alone  bool     // letters with a value always have it in the next argument
	long   []string // whole words without a value
	valued []string // whole words whose value is the next argument, or is joined by "="
}

// See dash(1), bash(1), zshoptions(1), python(1), perlrun(1), ruby(1), node(1) and
// env(1).
var (
	shell = interpreter{flags: "abefhiklmnprtuvxBCEHPT", values: "oO", alone: true,
		long: []string{"--login", "--norc", "--noprofile", "--posix"}, valued: []string{"--rcfile", "--init-file"}}
	interpreters = map[string]interpreter{
		"busybox": {},
		"perl":    {flags: "acflnpsStTuUwWX01234567", values: "I", joined: "MmixFCDV"},
		"ruby":    {flags: "acdlnpsSUvwyh01234567", values: "IrCEX", joined: "WKTixF"},
		"python":  {flags: "bBdEhiIOPqRsSuvVx", values: "WXQ"},
		"node":    {flags: "i", values: "rC", alone: true, valued: []string{"--require", "--import", "--conditions"}},
		"env": {flags: "iv0", values: "uCa", long: []string{"-", "--ignore-environment", "--debug", "--null"},
			valued: []string{"--unset", "--chdir", "--argv0"}},
	}
	shells = []string{"sh", "ash", "dash", "bash", "ksh", "mksh", "zsh"}
)

// interpreterOf knows an interpreter by its name: python3.12 is one, too.
func interpreterOf(name string) (interpreter, bool) {
	switch {
	case slices.Contains(shells, name):
		return shell, true
	case name == "nodejs":
		name = "node"
	case strings.HasPrefix(name, "python"):
		name = "python"
	}
	in, ok := interpreters[name]
	return in, ok
}

// interpreted looks for the script that an interpreter runs, and for what a
// script's own interpreter runs: env sh /opt/fake-runc.
func (c *command) interpreted() {
	for range 4 {
		in, ok := interpreterOf(c.base)
		if !ok {
			return
		}
		i := in.script(c.rest, c.base == "env")
		if i < 0 {
			return
		}
		file := c.rest[i]
		c.path, c.base, c.rest, c.script = file, path.Base(file), c.rest[i+1:], true
	}
}

// script is the place of the first argument that is no option, -1 where that is
// no file's name, or where the options leave open which argument it is.
func (in *interpreter) script(args []string, assigns bool) int {
	options := true
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case options && arg == "--":
			options = false
		case options && (strings.HasPrefix(arg, "-") || in.alone && strings.HasPrefix(arg, "+")):
			more, ok := in.option(arg)
			if !ok {
				return -1
			}
			i += more
		case assigns && strings.Contains(arg, "="):
			options = false
		case plausible(arg):
			return i
		default:
			return -1
		}
	}
	return -1
}

// option tells how many of the next arguments are an option's values, and whether
// the option is known to be none that holds a program.
func (in *interpreter) option(arg string) (more int, ok bool) {
	name, _, joined := strings.Cut(arg, "=")
	switch {
	case slices.Contains(in.long, arg), joined && slices.Contains(in.valued, name):
		return 0, true
	case slices.Contains(in.valued, arg):
		return 1, true
	case strings.HasPrefix(arg, "--"), len(arg) < 2:
		return 0, false
	}
	for k := 1; k < len(arg); k++ {
		letter, last := arg[k], k == len(arg)-1
		switch {
		case strings.IndexByte(in.flags, letter) >= 0:
		case strings.IndexByte(in.joined, letter) >= 0:
			return 0, true
		case strings.IndexByte(in.values, letter) < 0:
			return 0, false
		case last:
			return 1, true
		default:
			return 0, !in.alone
		}
	}
	return 0, true
}

// plausible tells whether an argument can be the path of a program: it is no
// text of one, nor an assignment.
func plausible(s string) bool {
	return s != "" && len(s) <= 4096 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("=;|&$<>()\"'`\\*?[]{}#!", r)
	})
}
