package podman

import (
	"slices"
	"strings"
)

func execVerb(name, variable string, args []string) []string {
	return slices.Concat([]string{"exec", "--env", variable, name}, args)
}

// refused goes by podman-exec(1): 125 is an error of podman's, 126 and 127 that
// the command could not be invoked or found. A command may end with these too; but
// podman says an error of its own on its last line.
func refused(exit int, stderr string) bool {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return exit >= 125 && exit <= 127 && strings.HasPrefix(lines[len(lines)-1], "Error: ")
}
