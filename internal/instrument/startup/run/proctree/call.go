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
	typed bool // it has flags that runtimes have, and hardly anybody else
	plain bool // it is nothing but a verb, an id and perhaps a signal
}

// The verbs of OCI runtimes, see the runtime's command line interface and runc(8),
// crun(1), youki and runsc. Of some the container is the first word after the
// flags, of others the last, of some there is none. What follows the container of
// an exec or a ps is another command's.
var (
	idLast  = []string{"create", "start", "state", "delete", "run", "pause", "resume", "events", "restore", "wait", "update", "checkpoint"}
	idFirst = []string{"kill", "exec", "ps"}
	idNone  = []string{"features", "list", "spec"}
)

// Flags with a value of their own that follows in the next argument, unless it is
// joined by "=".
var (
	globalValues = []string{"--root", "--log", "--log-format", "--log-level", "--criu", "--cgroup-manager",
		"--kata-config", "--debug-log", "--debug-log-format", "-l", "-r"}
	// They count for verbs whose container is the first word, exec and ps.
	verbValues = []string{
		"--process", "--cwd", "--env", "--user", "--additional-gids", "--process-label", "--apparmor", "--cap", "--cgroup", "--internal-pid-file",
		"--exec-fd", "--pid", "--console-socket", "--pidfd-socket", "--pid-file", "--preserve-fds", "--user-log", "--format",
	}
	// One letter is one thing for one verb and another for the next.
	shortValues = map[string]string{"exec": "eugpc", "ps": "f"}
	// Of flags that are not known it cannot be told whether the next word is
	// theirs or the container, where the container is the first.
	verbFlags = []string{"-a", "--all", "-f", "--force", "-r", "--regex", "-d", "--detach", "-t", "--tty", "--no-new-privs", "--ignore-paused"}
	typical   = []string{"--root", "--log", "--log-format", "--systemd-cgroup", "--bundle", "-b", "--pid-file", "--console-socket"}
)

// parseCall reads the arguments after a program's name as those of an OCI runtime:
// global flags, a verb, its flags, a container's id. cut says that arguments are
// missing at the end, where the id stands.
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

// words are the arguments after a verb without flags and their values; sure says
// that the first of them is no value either.
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

// valued tells whether a flag of the verb's has its value in the next argument.
// runsc writes -bundle where others write --bundle.
func (c *ociCall) valued(flag string) bool {
	if len(flag) == 2 {
		return strings.Contains(shortValues[c.verb], flag[1:])
	}
	return slices.Contains(verbValues, "--"+strings.TrimLeft(flag, "-"))
}

// findVerb skips global flags. An unknown one may have a value that follows, so
// one word after it that is no verb is let pass.
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

// isRuntime tells by its name whether a program is an OCI runtime, or stands in for
// one: fake-runc, runc.real.
func isRuntime(name string) bool {
	if strings.HasPrefix(name, "containerd-shim") {
		return false
	}
	if strings.HasPrefix(name, "kata-runtime") || strings.HasPrefix(name, "nvidia-container-runtime") {
		return true
	}
	for _, part := range strings.FieldsFunc(name, separates) {
		if slices.Contains(procs.Runtimes, part) {
			return true
		}
	}
	return false
}

// separates tells whether a character stands between the words of a program's name.
func separates(r rune) bool { return r == '-' || r == '_' || r == '.' }

// engines have verbs that read like a runtime's: docker start ID.
var engines = []string{"docker", "podman", "podman-remote", "nerdctl", "ctr", "crictl", "isula", "buildah", "kubectl", "dockerd", "containerd",
	"crio", "isulad", "docker-compose", "lima", "finch", "tare"}
