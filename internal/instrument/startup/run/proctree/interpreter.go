package proctree

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// flags maps an interpreter to its options without a value; see dash(1), bash(1),
// python(1), perlrun(1), ruby(1) and node(1). The first argument that is not such an
// option is the script. After any other option, such as -c, the arguments may contain
// program text. In this case the script is unknown, and arguments are not shown.
var flags = map[string]string{
	"sh": "abefhiklmnprtuvxBCEHPT", "busybox": "", "perl": "acflnpsStTuUwWX01234567", "ruby": "acdlnpsSUvwyh01234567", "python": "bBdEhiIOPqRsSuvVx", "node": "i",
}

// interpreterOf returns the interpreter for a program name, such as bash or
// python3.12.
func interpreterOf(name string) string {
	switch {
	case slices.Contains([]string{"ash", "dash", "bash", "ksh", "mksh", "zsh"}, name):
		return "sh"
	case name == "nodejs":
		return "node"
	case strings.HasPrefix(name, "python"):
		return "python"
	}
	return name
}

// interpreted replaces an interpreter by the script it runs. It handles nested
// interpreters: busybox sh /opt/fake-runc.
func (c *command) interpreted() {
	for range 4 {
		letters, known := flags[interpreterOf(c.base)]
		i := slices.IndexFunc(c.rest, func(arg string) bool { return len(arg) < 2 || arg[0] != '-' || strings.Trim(arg[1:], letters) != "" })
		if !known || i < 0 || c.rest[i][:min(1, len(c.rest[i]))] == "+" || !plausible(c.rest[i]) {
			return
		}
		file := c.rest[i]
		c.path, c.base, c.rest, c.script = file, path.Base(file), c.rest[i+1:], true
	}
}

// plausible reports whether an argument can be a program's path, not program text or
// an assignment.
func plausible(s string) bool {
	return s != "" && len(s) <= 4096 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("=;|&$<>()\"'`\\*?[]{}#!", r)
	})
}
