package docker

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client/pkg/versions"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// command is the docker command.
type command struct {
	path    string // absolute
	version string
	global  []string // arguments before the verb
	env     []string // beside what all commands get
}

// passed are the variables that the docker command finds its daemon by. What
// would make it talk to others too, such as DOCKER_CONTENT_TRUST, is left out.
var passed = []string{
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
	"DOCKER_API_VERSION", "SSH_AUTH_SOCK",
}

// oldestCommand knows create --pull.
const oldestCommand = "20.10"

func findCommand(ctx context.Context, name string, e subject.Engine, at address) (*command, error) {
	file := e.Command
	if file == "" {
		file = "docker"
	}
	path, err := exec.LookPath(file)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, engine.Unavailable(name, "apt-get install docker-cli, or docker.io", "there is no docker command: %v", err)
	}
	c := &command{path: path, env: environment(e)}
	if e.Address != "" {
		c.global = append(c.global, "--host", at.host)
	}
	c.global = append(c.global, e.Args...)
	banner, err := output(ctx, c.env, path, "--version")
	if err != nil {
		return nil, engine.Unavailable(name, "run it by hand", "%v", err)
	}
	// "Docker version 28.2.2, build e6534b4"; a stand-in says its own name.
	rest, is := strings.CutPrefix(banner, "Docker version ")
	c.version, _, _ = strings.Cut(rest, ",")
	if !is || c.version == "" {
		return nil, engine.Unavailable(name, "give the path of Docker's own command", "%s is not Docker's: %s --version printed %q", path, path, banner)
	}
	if versions.LessThan(c.version, oldestCommand) {
		return nil, engine.Unavailable(name, "upgrade it, or weigh Docker through its API", "%s is of version %s, and %s is the oldest that can be told to pull nothing", path, c.version, oldestCommand)
	}
	return c, nil
}

func environment(e subject.Engine) []string {
	values := map[string]string{}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			values[name] = v
		}
	}
	maps.Copy(values, e.Env)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}

// args is a whole command line.
func (c *command) args(verb ...string) []string {
	return slices.Concat([]string{c.path}, c.global, verb)
}

// output runs a program for the first line that it prints.
func output(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = lane.Environment(env)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	line, _, _ := strings.Cut(out.String(), "\n")
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("%s: no answer in time", lane.Quote(args))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", lane.Quote(args), err, line)
	}
	return line, nil
}

// programVersion is that of a runtime: what it says, else what the Go toolchain
// put into it, "" where neither is known.
func programVersion(ctx context.Context, path string) string {
	file, err := exec.LookPath(path)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return ""
	}
	line, err := output(ctx, nil, file, "--version")
	if err != nil {
		return ""
	}
	words := strings.Fields(line)
	for i, w := range words[:max(len(words)-1, 0)] {
		if v := words[i+1]; strings.TrimSuffix(w, ":") == "version" && v != "VERSION_MISSING" { // go install of runsc
			return v
		}
	}
	if info, err := buildinfo.ReadFile(file); err == nil {
		return info.Main.Version
	}
	return ""
}
