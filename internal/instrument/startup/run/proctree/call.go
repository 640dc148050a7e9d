package proctree

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
)

// ociCall is a command of an OCI runtime.
type ociCall struct {
	verb  string
	id    string
	typed bool // it has flags that are typical of runtimes
	plain bool // only a verb, an id and possibly a signal
}

// The verbs of OCI runtimes, from the runtime command line interface, runc(8),
// crun(1), youki and runsc. The container is the first or the last word after the
// flags, or missing, depending on the verb. For exec and ps, the words after the
// container are another command.
var (
	idLast  = []string{"create", "start", "state", "delete", "run", "pause", "resume", "events", "restore", "wait", "update", "checkpoint"}
	idFirst = []string{"kill", "exec", "ps"}
	idNone  = []string{"features", "list", "spec"}
)

// Flags with a value in the next argument, unless joined by "=".
var (
	globalValues = []string{"--root", "--log", "--log-format", "--log-level", "--criu", "--cgroup-manager",
		"--kata-config", "--debug-log", "--debug-log-format", "-l", "-r"}
	// For the verbs that have the container as their first word: exec and ps.
	verbValues = []string{
		"--process", "--cwd", "--env", "--user", "--additional-gids", "--process-label", "--apparmor", "--cap", "--cgroup", "--internal-pid-file",
		"--exec-fd", "--pid", "--console-socket", "--pidfd-socket", "--pid-file", "--preserve-fds", "--user-log", "--format",
	}
	// Short flags differ between verbs.
	shortValues = map[string]string{"exec": "eugpc", "ps": "f"}
	// Flags without a value. For any other flag, the next word may be its value or the
	// container.
	verbFlags = []string{"-a", "--all", "-f", "--force", "-r", "--regex", "-d", "--detach", "-t", "--tty", "--no-new-privs", "--ignore-paused"}
	typical   = []string{"--root", "--log", "--log-format", "--systemd-cgroup", "--bundle", "-b", "--pid-file", "--console-socket"}
)

// parseCall parses the arguments of an OCI runtime: global flags, verb, flags,
// container id. cut means that the end of the arguments, which has the id, is missing.
func parseCall(args []string, cut bool) (ociCall, bool) {
	var c ociCall
	rest, ok := c.findVerb(args)
	if !ok {
		return c, false
	}
	words, flags, sure := c.words(rest)
	switch {
	case len(words) == 0:
	case slices.Contains(idFirst, c.verb):
		if sure {
			c.id = container(words[0])
		}
	case !cut && slices.Contains(idLast, c.verb):
		c.id = container(words[len(words)-1])
	}
	c.plain = !flags && !c.typed && c.id != "" && (len(words) == 1 || len(words) == 2 && c.verb == "kill")
	return c, true
}

// words returns the arguments after a verb, without flags and their values. flags
// reports whether there are flags. sure reports whether the first word is certainly
// not a flag's value.
func (c *ociCall) words(rest []string) (words []string, flags, sure bool) {
	sure = true
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		switch {
		case arg == "--":
			return append(words, rest[i+1:]...), flags, sure
		case strings.HasPrefix(arg, "-") && arg != "-":
			flags = true
			c.seen(arg)
			switch {
			case c.valued(arg):
				i++
			case len(words) == 0 && !strings.Contains(arg, "=") && !slices.Contains(verbFlags, arg):
				sure = false
			}
		case c.verb == "exec", c.verb == "ps":
			return append(words, rest[i:]...), flags, sure
		default:
			words = append(words, arg)
		}
	}
	return words, flags, sure
}

// valued reports whether a flag of the verb has a value in the next argument. runsc
// uses -bundle instead of --bundle.
func (c *ociCall) valued(flag string) bool {
	if len(flag) == 2 {
		return strings.Contains(shortValues[c.verb], flag[1:])
	}
	return slices.Contains(verbValues, "--"+strings.TrimLeft(flag, "-"))
}

// findVerb skips the global flags and returns the arguments after the verb. An unknown
// flag may have a value, so one word after it is skipped if it is not a verb.
func (c *ociCall) findVerb(args []string) ([]string, bool) {
	pass := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case strings.HasPrefix(arg, "-"):
			c.seen(arg)
			if slices.Contains(globalValues, arg) {
				i++
				continue
			}
			pass = !strings.Contains(arg, "=")
		case slices.Contains(idLast, arg), slices.Contains(idFirst, arg), slices.Contains(idNone, arg):
			c.verb = arg
			return args[i+1:], true
		case pass:
			pass = false
		default:
			return nil, false
		}
	}
	return nil, false
}

func (c *ociCall) seen(flag string) {
	name, _, _ := strings.Cut(flag, "=")
	c.typed = c.typed || slices.Contains(typical, name)
}

// isRuntime reports whether a program name is the name of an OCI runtime or of a
// replacement, such as fake-runc or runc.real.
func isRuntime(name string) bool {
	switch {
	case strings.HasPrefix(name, "containerd-shim"):
		return false
	case strings.HasPrefix(name, "kata-runtime"), strings.HasPrefix(name, "nvidia-container-runtime"):
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, separates), func(part string) bool { return slices.Contains(procs.Runtimes, part) })
}

// separates reports whether a character separates the words of a program name.
func separates(r rune) bool { return r == '-' || r == '_' || r == '.' }

// engines are engines and clients with the same verbs as runtimes, as in docker start
// ID.
var engines = []string{"docker", "podman", "podman-remote", "nerdctl", "ctr", "crictl", "isula", "buildah", "kubectl", "dockerd", "containerd",
	"crio", "isulad", "docker-compose", "lima", "finch", "tare"}
