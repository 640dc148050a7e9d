// Package isula weighs OCI runtimes under iSulad, through its command line isula. Output formats are
// those of iSulad 2.1.5.
package isula

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

const (
	defaultAddress = "unix:///var/run/isulad.sock"
	// patience bounds the queries of New.
	patience = 10 * time.Second
)

// Target is iSulad with one runtime.
type Target struct {
	name    string
	isula   cli.Program
	options []string // of every command, after the verb
	address string   // of the daemon's socket
	runtime string   // "" for the daemon's default
	program string   // version of the runtime, if known
	version string   // of the server
	client  string
	facts   map[string]string // from `isula info`
	network string
	help    string // output of create --help
	image   *image.Image
}

// New returns iSulad with a runtime, "" for its default. e.Args follow the verb, since isula
// takes no options before it. If it cannot be weighed, the error is a *subject.Unavailable.
//
// The runtimes come from the daemon's configuration. If that cannot be read, a missing runtime
// fails at create.
func New(ctx context.Context, name, runtime, _ string, e subject.Engine) (subject.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := &Target{name: name, runtime: runtime, network: cmp.Or(e.Network, subject.NetworkNone)}
	var err error
	// The client needs the locale en_US.UTF-8, whose location the variables may name.
	t.isula, err = cli.Find(e, "isula", "ISULAD_*", "LOCPATH", "LOCALE_ARCHIVE")
	if err != nil {
		return nil, engine.Unavailable(name, "install iSulad (openEuler: dnf install iSulad)", "%v", err)
	}
	t.address = address(e)
	if e.Address != "" {
		t.options = append(t.options, "-H", engine.WithScheme(e.Address))
	}
	t.options = append(t.options, t.isula.Args...)
	t.isula.Args = nil
	if engine.Socket(t.address) == "" {
		return nil, engine.Unavailable(name, "give its socket: "+defaultAddress, "iSulad is weighed by its unix socket only, not at %q", t.address)
	}
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	config := ConfigOf(engine.Socket(t.address))
	if config != nil {
		t.program = containerd.RuntimeVersion(ctx, engine.Socket(t.address), config.Path(runtime))
	}
	if config != nil && runtime != "" && !config.Has(runtime) {
		return nil, engine.Unavailable(name, `add it to "runtimes" in `+DaemonConfig+` and restart isulad`, "isulad has no runtime %q (configured: %s)", runtime, strings.Join(config.Names(), ", "))
	}
	t.image, err = image.Probe()
	return t, err
}

// address returns the client's address.
func address(e subject.Engine) string {
	return cmp.Or(engine.WithScheme(e.Address), e.Variable("ISULAD_HOST"), defaultAddress)
}

// ask queries the daemon's version and configuration.
func (t *Target) ask(ctx context.Context) error {
	const advice = "start the daemon: systemctl start isulad"
	c := t.commands(subject.Env{}, nil)
	out, err := c.Ask(ctx, []string{"version"})
	var failed *cli.Error
	switch {
	case errors.As(err, &failed) && strings.Contains(failed.Output, "en_US.UTF-8"):
		return engine.Unavailable(t.name, "localedef -i en_US -f UTF-8 en_US.UTF-8", "%v", err)
	case errors.As(err, &failed) && strings.Contains(failed.Output, "error while loading shared libraries"):
		return engine.Unavailable(t.name, "install the missing library: see ldd "+t.isula.Path, "the client does not run: %v", err)
	case err != nil:
		return engine.Unavailable(t.name, advice, "no answer from %s: %v", t.address, err)
	}
	t.client, t.version = versions(string(out))
	if t.version == "" {
		return engine.Unavailable(t.name, "run it by hand: "+lane.Quote(t.isula.Line(c.Verb("version")...)), "isula version has no version of a server")
	}
	if major, _, _ := strings.Cut(t.version, "."); major < "2" && len(major) == 1 {
		return engine.Unavailable(t.name, "install a newer iSulad", "iSulad %s is too old (minimum: 2.0)", t.version)
	}
	if out, err = c.Ask(ctx, []string{"info"}); err != nil {
		return engine.Unavailable(t.name, advice, "%v", err)
	}
	t.facts = facts(string(out))
	// Clients before 2.1 have no --pull and pull a missing image. Open checks the import.
	out, _ = c.Ask(ctx, []string{"create", "--help"})
	t.help = string(out)
	if driver := t.facts[loggingDriver]; !t.takes("--log-driver") && driver != "" && driver != jsonFile {
		return engine.Unavailable(t.name, `set "container-log": {"driver": "json-file"} in `+DaemonConfig+` and restart isulad`,
			"containers log to %s, which keeps no output to check that the workload ran, and this isula create has no --log-driver", driver)
	}
	return nil
}

// takes reports whether create has an option.
func (t *Target) takes(option string) bool { return strings.Contains(t.help, option+" ") }

const (
	loggingDriver = "Logging Driver"
	jsonFile      = "json-file"
)

// Runtimes lists the configured runtimes, the default first, or the built-in default if the
// configuration is unavailable. Without iSulad, the error is a *subject.Unavailable.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	if _, err := New(ctx, "isula", "", "", e); err != nil {
		return nil, err
	}
	if config := ConfigOf(engine.Socket(address(e))); config != nil {
		return config.Names(), nil
	}
	return builtIn[:1], nil
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	c := t.commands(subject.Env{RunID: "RUN", Limits: subject.DefaultLimits}, t.image)
	const done = "the command has exited with 0; "
	const ran = done + "then: inspect says running, the process exists and its first line is in the log"
	out := record.Target{
		Name: t.name, Kind: "isula", Version: t.version, Path: t.isula.Path, Clock: engine.Clock(t.runtime),
		Operations: c.Operations("containers of isula have no pods: weigh pods through CRI", map[subject.Op]string{
			subject.Create: done + "then: inspect says inited",
			subject.Start:  ran, // a second start exits with 0 too, so inspect decides
			subject.Stop:   done + "iSulad sends the stop signal and waits for the exit; then: inspect says exited, with 0",
			subject.Remove: done + "then: ps does not list the container",
			subject.Run:    ran,
		}),
		Config: map[string]string{
			"runtime": cmp.Or(t.runtime, "iSulad's default"), "network": t.network, "via": "command line", "address": t.address,
			"client version": t.client, "runtime version": t.program,
		},
	}
	for fact, key := range map[string]string{
		"Storage Driver": "storage driver", "Backing Filesystem": "backing file system", loggingDriver: "log driver",
		"Cgroup Driver": "cgroup driver", "Cgroup Version": "cgroup version", "iSulad Root Dir": "storage root",
	} {
		out.Config[key] = t.facts[fact]
	}
	out.Notes = append(out.Notes, "isula stats refreshes every 1.6 s, so its memory figures are up to that old")
	if kata.Is(t.runtime) {
		maps.Copy(out.Config, kata.Facts(""))
	}
	if t.takes("--log-driver") {
		out.Config["log driver"] = jsonFile
		out.Notes = append(out.Notes, "log driver json-file is requested, because others keep no output to check that the workload ran (isula info says json-file even if the daemon's is syslog)")
	}
	if !t.takes("--pull") {
		out.Notes = append(out.Notes, "this isula has no --pull: it would pull a missing image")
	}
	maps.DeleteFunc(out.Config, func(_, value string) bool { return value == "" })
	return out
}
