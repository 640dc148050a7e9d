package isula

import (
	"slices"
	"strings"
)

// exec is the verb that runs a command in a container. isula takes no option
// after the container's name.
func (t *Target) exec(name, variable string, args []string) []string {
	return t.verb("exec", slices.Concat([]string{"--env", variable, name}, args)...)
}

// refused tells an error of isula's from the command's by what isula prints of
// its own, see client_print_error in iSulad's src/cmd/isula. Its exit status says
// nothing: it is 1, or one that the daemon chose.
func refused(exit int, stderr string) bool {
	if exit == 0 {
		return false
	}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "Error response from daemon:") || strings.HasPrefix(line, "Inspect error:") ||
			strings.HasPrefix(line, "Can not connect with server") || strings.HasPrefix(line, "Unknown flag found") {
			return true
		}
	}
	return false
}
