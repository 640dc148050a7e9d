// Package isula weighs OCI runtimes under iSulad, through its command line
// isula. What it prints was taken from iSulad 2.1.5.
package isula

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
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
	// patience is how long isula may take to say what it is.
	patience = 10 * time.Second
)

// Target is iSulad with one runtime.
type Target struct {
	name    string
	isula   cli.Program
	before  []string // what each command is given right after its verb
	address string   // of the daemon's socket
	runtime string   // "" for the daemon's default
	program string   // version of the runtime, where that could be asked
	version string   // of the server
	client  string
	facts   map[string]string // what `isula info` says
	network string
	help    string // of create
	image   *image.Image
}

// New returns iSulad with a runtime, "" for its default. There is one way to
// drive it, so via says nothing. e.Args are given after the verb: isula takes
// no option before it. The error is a *subject.Unavailable when it cannot be
// weighed here.
//
// Which runtimes a daemon has cannot be asked: its configuration tells. Where that
// cannot be read, one that it has not shows at create.
func New(ctx context.Context, name, runtime, _ string, e subject.Engine) (subject.Target, error) {
	return newTarget(ctx, name, runtime, e)
}

func newTarget(ctx context.Context, name, runtime string, e subject.Engine) (*Target, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := &Target{name: name, runtime: runtime, network: cmp.Or(e.Network, subject.NetworkNone)}
	var err error
	// The client wants the locale en_US.UTF-8, which may be elsewhere.
	t.isula, err = cli.Find(e, "isula", "ISULAD_*", "LOCPATH", "LOCALE_ARCHIVE")
	if err != nil {
		return nil, engine.Unavailable(name, "install iSulad (openEuler: dnf install iSulad)", "%v", err)
	}
	t.address = address(e)
	if e.Address != "" {
		t.before = append(t.before, "-H", withScheme(e.Address))
	}
	t.before = append(t.before, t.isula.Args...)
	t.isula.Args = nil
	if engine.Socket(t.address) == "" {
		return nil, engine.Unavailable(name, "name its socket: "+defaultAddress, "iSulad is weighed on the machine itself, by its unix socket, not at %q", t.address)
	}
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	config := ConfigOf(engine.Socket(t.address))
	if config != nil {
		t.program = containerd.RuntimeVersion(ctx, engine.Socket(t.address), config.Path(runtime))
	}
	if config != nil && runtime != "" && !config.Has(runtime) {
		return nil, engine.Unavailable(name, `add it to "runtimes" in `+DaemonConfig+` and restart isulad`, "isulad has no runtime %q; its configuration names %s", runtime, strings.Join(config.Names(), ", "))
	}
	t.image, err = image.Probe()
	return t, err
}

// address is the one that the client will use.
func address(e subject.Engine) string {
	host, given := e.Env["ISULAD_HOST"]
	if !given {
		host = os.Getenv("ISULAD_HOST")
	}
	return cmp.Or(withScheme(e.Address), host, defaultAddress)
}

// withScheme makes an address of a socket's path.
func withScheme(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix://" + address
	}
	return address
}

// ask gathers what the daemon says of itself.
func (t *Target) ask(ctx context.Context) error {
	const advice = "start the daemon: systemctl start isulad"
	c := t.commands(subject.Env{}, nil)
	out, err := c.Ask(ctx, []string{"version"})
	var failed *cli.Error
	switch {
	case errors.As(err, &failed) && strings.Contains(failed.Output, "en_US.UTF-8"):
		return engine.Unavailable(t.name, "localedef -i en_US -f UTF-8 en_US.UTF-8", "%v", err)
	case errors.As(err, &failed) && strings.Contains(failed.Output, "error while loading shared libraries"):
		return engine.Unavailable(t.name, "install the library that is missing: ldd "+t.isula.Path+" lists it", "the client cannot be run: %v", err)
	case err != nil:
		return engine.Unavailable(t.name, advice, "no answer from %s: %v", t.address, err)
	}
	t.client, t.version = versions(string(out))
	if t.version == "" {
		return engine.Unavailable(t.name, "run it by hand: "+lane.Quote(t.isula.Line(c.Verb("version")...)), "isula version names no version of a server")
	}
	if major, _, _ := strings.Cut(t.version, "."); major < "2" && len(major) == 1 {
		return engine.Unavailable(t.name, "install a newer iSulad", "iSulad %s is older than 2.0, the first version that is supported", t.version)
	}
	if out, err = c.Ask(ctx, []string{"info"}); err != nil {
		return engine.Unavailable(t.name, advice, "%v", err)
	}
	t.facts = facts(string(out))
	// Clients before 2.1 have no --pull: they pull what is missing, so that
	// the import has to be there, which Open makes sure of.
	out, _ = c.Ask(ctx, []string{"create", "--help"})
	t.help = string(out)
	if driver := t.facts[loggingDriver]; !t.takes("--log-driver") && driver != "" && driver != jsonFile {
		return engine.Unavailable(t.name, `set "container-log": {"driver": "json-file"} in `+DaemonConfig+` and restart isulad`,
			"containers log by %s, which keeps no output to prove that the workload ran, and this isula create has no --log-driver", driver)
	}
	return nil
}

// takes tells whether create knows an option.
func (t *Target) takes(option string) bool { return strings.Contains(t.help, option+" ") }

const (
	loggingDriver = "Logging Driver"
	jsonFile      = "json-file"
)

// Runtimes lists the runtimes that are known to be there, the default first:
// those that the daemon's configuration names, else the one that it is built
// with. The error is a *subject.Unavailable when there is no iSulad.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	t, err := newTarget(ctx, "isula", "", e)
	if err != nil {
		return nil, err
	}
	if config := ConfigOf(engine.Socket(t.address)); config != nil {
		return config.Names(), nil
	}
	return builtIn[:1], nil
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	c := t.commands(subject.Env{RunID: "RUN", Limits: subject.DefaultLimits}, t.image)
	const done = "the command has exited with 0; "
	const ran = done + "then: inspect says running, the process is there and its first line is in the log"
	out := record.Target{
		Name: t.name, Kind: "isula", Version: t.version, Path: t.isula.Path, Clock: engine.Clock(t.runtime),
		Operations: c.Operations("containers of isula have no pods; pods are weighed through CRI", map[subject.Op]string{
			subject.Create: done + "then: inspect says inited",
			subject.Start:  ran, // a start of what runs exits with 0 too: inspect is what counts
			subject.Stop:   done + "iSulad sends the stop signal and waits for the exit; then: inspect says exited, with 0",
			subject.Remove: done + "then: ps does not list the container",
			subject.Run:    ran,
		}),
		Config: map[string]string{
			"runtime": cmp.Or(t.runtime, "iSulad's default"), "network": t.network, "via": "command line", "address": t.address,
			"client version": t.client, "runtime version": t.program,
		},
	}
	if t.program == "" {
		delete(out.Config, "runtime version")
	}
	for fact, key := range map[string]string{
		"Storage Driver": "storage driver", "Backing Filesystem": "backing file system", loggingDriver: "log driver",
		"Cgroup Driver": "cgroup driver", "Cgroup Version": "cgroup version", "iSulad Root Dir": "storage root",
	} {
		if v := t.facts[fact]; v != "" {
			out.Config[key] = v
		}
	}
	out.Notes = append(out.Notes, "isula stats refreshes every 1.6 s: what it says of memory is up to that old")
	if kata.Is(t.runtime) {
		maps.Copy(out.Config, kata.Facts(""))
	}
	if t.takes("--log-driver") {
		out.Config["log driver"] = jsonFile
		out.Notes = append(out.Notes, "log driver json-file is asked for, whichever the daemon's is (isula info says json-file also where it is syslog), because another keeps no output to prove that the workload ran")
	}
	if !t.takes("--pull") {
		out.Notes = append(out.Notes, "this isula has no --pull: were the image not there, it would try to pull it")
	}
	return out
}
