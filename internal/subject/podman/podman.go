// Package podman measures OCI runtimes under Podman, through its command line, which needs no
// daemon. Podman's service (`podman system service`) has Docker's API and is measured as
// docker/RUNTIME with --docker-host unix:///run/podman/podman.sock.
package podman

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// patience bounds podman info. Without a daemon its first call on a slow or busy machine takes more
// than ten seconds.
const patience = time.Minute

// Target is podman's command line with one runtime.
type Target struct {
	name    string
	podman  cli.Program // runtime and storage among its arguments
	info    info
	image   *image.Image
	network string
	driver  string // --log-driver, "" for podman's default
	hs      []cgroup.Hierarchy
	private bool            // needs a mount namespace without the cgroup2 mount
	rlimits []engine.Rlimit // explicit limits; nil for podman's defaults
}

// New returns podman with a runtime: a name or path that podman knows, or a name on PATH; "" is
// podman's default. If it cannot be measured, the error is a *subject.Unavailable.
func New(ctx context.Context, name, runtime, _ string, e subject.Engine) (subject.Target, error) {
	if os.Geteuid() != 0 {
		return nil, engine.Unavailable(name, "run tare as root (sudo tare …)", "rootless podman is not supported")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	podman, err := program(name, e)
	if err != nil {
		return nil, err
	}
	t := &Target{name: name, network: cmp.Or(e.Network, subject.NetworkNone)}
	if t.podman, t.info, err = choose(ctx, name, podman, runtime); err != nil {
		return nil, err
	}
	if t.image, err = image.Probe(); err != nil {
		return nil, err
	}
	if t.hs, err = cgroup.Hierarchies(); err != nil {
		return nil, engine.Unavailable(name, "mount the cgroup hierarchies", "%v", err)
	}
	t.private = t.info.isCrun() && cgroup.ModeOf(t.hs) == cgroup.Hybrid
	t.driver = t.info.logDriver()
	t.rlimits = engine.BelowPidMax(engine.Lowered(os.Getpid()))
	return t, nil
}

// program returns podman without a runtime.
func program(name string, e subject.Engine) (cli.Program, error) {
	podman, err := cli.Find(e, "podman", "CONTAINER_*", "CONTAINERS_*", "XDG_*", "STORAGE_*", "REGISTRIES_CONFIG_PATH", "DBUS_SESSION_BUS_ADDRESS")
	if err != nil {
		return podman, engine.Unavailable(name, "apt-get install podman", "%v", err)
	}
	if host := e.Variable("CONTAINER_HOST"); host != "" {
		return podman, engine.Unavailable(name, "unset CONTAINER_HOST, or weigh that service as docker: --docker-host "+host,
			"CONTAINER_HOST=%s makes podman a client of a service, where the runtime cannot be chosen", host)
	}
	if e.Address != "" {
		return podman, engine.Unavailable(name, "weigh that service as docker: --docker-host "+e.Address, "podman is weighed by its command line, without an address")
	}
	if e.Root != "" {
		podman.Args = append(podman.Args, "--root", e.Root)
	}
	if e.RunRoot != "" {
		podman.Args = append(podman.Args, "--runroot", e.RunRoot)
	}
	return podman, nil
}

// choose finds the name or path of the runtime that podman accepts, and returns podman's info
// with it.
func choose(ctx context.Context, name string, podman cli.Program, runtime string) (cli.Program, info, error) {
	p := with(podman, runtime)
	i, err := ask(ctx, p)
	if err == nil {
		return p, i, i.check(name)
	}
	if runtime == "" {
		return p, i, engine.Unavailable(name, "check it with: "+podman.Path+" info", "%v", err)
	}
	// Podman accepts a runtime that is not in its configuration only by path.
	if file, lookErr := exec.LookPath(runtime); lookErr == nil && !strings.Contains(runtime, "/") {
		if file, lookErr = filepath.Abs(file); lookErr == nil {
			if i, atPath := ask(ctx, with(podman, file)); atPath == nil {
				return with(podman, file), i, i.check(name)
			}
		}
	}
	byDefault, plain := ask(ctx, podman)
	if plain != nil { // podman itself fails
		return p, i, engine.Unavailable(name, "check it with: "+podman.Path+" info", "%v", plain)
	}
	return p, i, engine.Unavailable(name, "install "+filepath.Base(runtime)+" on PATH, or add it to [engine.runtimes] in containers.conf",
		"podman has no runtime %s (available: %s): %v", runtime, strings.Join(registered(ctx, podman, byDefault), ", "), err)
}

// usual are the runtimes in podman's default configuration (containers/common 0.50 and later).
var usual = []string{"crun", "runc", "youki", "runsc", "kata", "krun"}

// Runtimes lists the runtimes that podman accepts by name, its default first. Without
// podman, the error is a *subject.Unavailable.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	podman, err := program("podman", e)
	if err != nil {
		return nil, err
	}
	_, i, err := choose(ctx, "podman", podman, "")
	if err != nil {
		return nil, err
	}
	return registered(ctx, podman, i), nil
}

// registered lists the default runtime of i, and the usual ones that exist.
func registered(ctx context.Context, podman cli.Program, i info) []string {
	known := make([]string, len(usual))
	_ = engine.Each(len(usual), func(n int) error {
		_, err := ask(ctx, with(podman, usual[n]))
		if err == nil {
			known[n] = usual[n]
		}
		return err
	})
	first := i.Host.OCIRuntime.Name
	return append([]string{first}, slices.DeleteFunc(known, func(runtime string) bool { return runtime == "" || runtime == first })...)
}

// with returns podman with a runtime, "" for its default.
func with(podman cli.Program, runtime string) cli.Program {
	if runtime != "" {
		podman.Args = slices.Concat(podman.Args, []string{"--runtime", runtime})
	}
	return podman
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	c := t.commands(t.podman, subject.Env{RunID: "RUN", Limits: subject.DefaultLimits}, t.image)
	const done = "the command has exited with 0; "
	const ran = done + "then: podman says running, the process exists and its first line is in the log"
	out := record.Target{
		Name: t.name, Kind: "podman", Version: t.info.Version.Version, Path: t.podman.Path, Clock: t.info.clock(),
		Operations: c.Operations("containers of podman are weighed without a pod", map[subject.Op]string{
			subject.Create: done + "then: podman says created",
			subject.Start:  ran,
			subject.Stop:   done + "podman sends the stop signal and waits for the exit; then: podman says exited, with 0",
			subject.Remove: done + "then: podman does not know the container",
			subject.Run:    ran,
		}),
		Config: t.info.config(),
	}
	out.Config["via"] = "command line"
	out.Config["network"] = t.network
	out.Config["log driver"] = cmp.Or(t.driver, t.info.Host.LogDriver)
	if t.private {
		out.Notes = append(out.Notes, "podman runs in a private mount namespace without the cgroup2 mount: crun refuses a hybrid cgroup layout")
	}
	if t.driver != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("log driver %s instead of %s, which keeps no output to check that the workload ran", t.driver, t.info.Host.LogDriver))
	}
	if t.rlimits != nil {
		out.Notes = append(out.Notes, "started with --ulimit: without CAP_SYS_RESOURCE podman may not set its default limits")
	}
	out.Notes = append(out.Notes, "podman's stop polls for the end of the process (every 100 ms in version 4.3, every 10 ms in later ones), so its latency has that step; its monitor's clean-up after a stop is awaited, untimed")
	return out
}
