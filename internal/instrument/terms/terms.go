// Package terms declares the options shared by several measurements: targets, access,
// duration and limits. Each is declared once, and embedded or called where needed.
package terms

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// MaxRounds is the maximum number of rounds.
const MaxRounds = 1_000_000

// Title declares the title of the report.
func Title(s *option.Set, p *string) {
	option.Text(s, p, "title", "title of the report", option.OmitEmpty, option.NoFlag)
}

// Rounds declares the number of rounds.
func Rounds(s *option.Set, p *int, help string) {
	option.Int(s, p, "rounds", help, option.Bounds(1, MaxRounds, "a number of rounds"))
}

// Warmup declares the number of uncounted rounds.
func Warmup(s *option.Set, p *int, help string) {
	option.Int(s, p, "warmup", help, option.Bounds(0, MaxRounds, "a number of rounds"))
}

// Budget declares the time after which nothing new begins.
func Budget(s *option.Set, p *time.Duration, what string) {
	option.Time(s, p, "budget", "start no new "+what+" after this time", option.Must(someTime))
}

func someTime(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%v leaves no time to measure: write more than 0s, such as 10m", d)
	}
	return nil
}

// Timeout declares the timeout of an operation.
func Timeout(s *option.Set, p *time.Duration, help string) {
	option.Time(s, p, "timeout", help, option.AtLeast(time.Millisecond, "would fail every operation", "60s"))
}

// Comparing declares how figures are compared.
func Comparing(s *option.Set, p *figure.Comparing) {
	option.Var(s, &p.Margin, "margin", "equivalence margin: targets shown to differ by less than this count as the same, e.g. 5% (default: 5%)", Margin, option.OmitEmpty, option.Must(CheckMargin))
	option.Text(s, &p.Adjust, "adjust", "how p-values of one table are adjusted: holm, bh (Benjamini–Hochberg), or none (default: holm)", option.OmitEmpty, option.Choices(string(stat.Holm), string(stat.BH), string(stat.Raw)))
}

// Baseline declares the target to compare the others with.
func Baseline(s *option.Set, p *string, otherwise string) {
	option.Text(s, p, "baseline", "target to compare the others with (default: "+otherwise+")", option.OmitEmpty)
}

// CheckNamed validates a target named by an option against the names of all targets,
// if these are known.
func CheckNamed(field, name string, names []string) option.FieldErrors {
	switch {
	case name == "" || slices.Contains(names, name):
		return nil
	case len(names) > 0:
		return option.FieldErrors{option.Wrongf(field, "%s is not one of the targets: the targets are %s", option.Quote(name), strings.Join(names, ", "))}
	case !IsTarget(name):
		return option.FieldErrors{option.Wrongf(field, "%s is not a target: write a name such as runc", option.Quote(name))}
	}
	return nil
}

// Seed declares the seed of a random order.
func Seed(s *option.Set, p *uint64, of string) {
	option.Var(s, p, "seed", "seed of the order of "+of+" in each round (default: random, and recorded)", option.Natural)
}

// Missing is the reaction to a target of the plan that is unavailable on this machine.
type Missing string

// The values of Missing.
const (
	MissingFail Missing = "fail" // measure nothing
	MissingSkip Missing = "skip" // measure the others and report the missing target
)

// Whom selects the targets, and the settings for reaching their engines.
type Whom struct {
	Targets []string // names, or name=path for a runtime; empty: all that are found
	Missing Missing  // empty: MissingFail
	Via     []string // "api", "cli": how engines that have both are driven; empty: each its usual way
	Engines Engines  // how engines are reached

	identify Identify
}

// Identify returns the name of a CRI endpoint.
type Identify func(ctx context.Context, address string) (string, error)

// IdentifyBy sets the function that names --cri endpoints without a name.
func (w *Whom) IdentifyBy(i Identify) { w.identify = i }

// Weighed returns the options themselves, for types that embed them.
func (w *Whom) Weighed() *Whom { return w }

// Skips reports whether missing targets are skipped.
func (w *Whom) Skips() bool { return w.Missing == MissingSkip }

// Everyone selects all targets found.
var Everyone = Whom{Targets: []string{}, Missing: MissingFail}

// declare declares the options; missing describes what may be unavailable.
func (w *Whom) declare(s *option.Set, missing string) {
	option.List(s, &w.Targets, "targets", "targets to measure: names, or name=path for a runtime (default: all targets found)", option.Arguments("TARGET"))
	option.Text(s, &w.Missing, "missing", "reaction to "+missing+" here: fail, or skip it and measure the others", option.OmitEmpty, option.Choices("fail", "skip"))
	w.declareVia(s)
	option.Var(s, &w.Engines, "engines", "how engines are reached, by an engine's name (docker, podman, containerd, cri+NAME, isula, kubernetes) or a target's (docker/runc)", enginesKind, option.OmitEmpty)
	new(engineFlags).declare(s, w)
}

func (w *Whom) declareVia(s *option.Set) {
	option.List(s, &w.Via, "via", "drive docker and CRI endpoints through their api, their cli (docker, crictl), or both: api,cli (default: api)",
		option.OmitEmpty, option.Choices("api", "cli"), option.Once("keep one of them"))
}

// DeclareWhom declares the selection of targets.
func (w *Whom) DeclareWhom(s *option.Set) { w.declare(s, "a named target that is unavailable") }

// DeclareWhomOr is like DeclareWhom for measurements that also need something else.
func (w *Whom) DeclareWhomOr(s *option.Set, also string) {
	w.declare(s, "a named target or "+also+" that is unavailable")
}

// SplitTarget splits "name=path". A plain name has no path.
func SplitTarget(s string) (name, path string) {
	name, path, _ = strings.Cut(s, "=")
	return name, path
}

// pattern compiles a regular expression when it is first used.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// targetName matches a name, or an engine and a runtime: "cri+containerd/runc".
var targetName = pattern(`^[A-Za-z0-9][A-Za-z0-9._+@:-]*(/[A-Za-z0-9][A-Za-z0-9._+@:-]*)?$`)

// IsTarget reports whether a name is a valid target name.
func IsTarget(name string) bool { return targetName().MatchString(name) }

// CheckWhom returns the errors and the names of usable targets.
func (w *Whom) CheckWhom() (all option.FieldErrors, names []string) {
	for i, t := range w.Targets {
		name, path := SplitTarget(t)
		wrong := ""
		switch {
		case !IsTarget(name):
			wrong = option.Quote(t) + " is not a target: write a name such as runc, or name=path for a runtime"
		case path == "" && name != t:
			wrong = option.Quote(t) + " names no path after the =: write name=path, such as crun=/usr/bin/crun"
		case slices.Contains(names, name):
			wrong = fmt.Sprintf("%s is there twice: give each target a name of its own, such as %s-2=path", name, name)
			if strings.Contains(name, "/") { // the name identifies the path
				wrong = name + " is there twice: leave one of them out"
			}
		default:
			names = append(names, name)
			continue
		}
		all = append(all, option.Wrongf("targets", "%s", wrong).At(i))
	}
	return append(all, w.Engines.check()...), names
}

// Engines holds the settings for reaching and driving engines, keyed by the name of an
// engine ("docker", "cri+containerd") or a target ("docker/runc"). Settings of a target
// take precedence over those of its engine.
type Engines map[string]setting.Engine

// Of returns the settings for a target.
func (e Engines) Of(name string) setting.Engine {
	engine, _, _ := strings.Cut(name, "/")
	plain := strings.TrimSuffix(strings.TrimSuffix(engine, "+cli"), "+api") // docker+cli is docker with another access
	return e[name].Over(e[engine]).Over(e[plain])
}

// engineName matches the name of an engine or a target.
var engineName = pattern(`^[A-Za-z][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+@:-]*)?$`)

var envName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (e Engines) check() option.FieldErrors {
	var all option.FieldErrors
	for name, engine := range e {
		field := "engines." + name
		if !engineName().MatchString(name) {
			all = append(all, option.Wrongf(field, "%s names no engine: write docker, podman, containerd, cri+NAME, isula or kubernetes, or a target's name", option.Quote(name)))
		}
		if !slices.Contains(networks, engine.Network) {
			all = append(all, option.Wrongf(field, "network: %s is not one of none, bridge, host", option.Quote(engine.Network)))
		}
		for key, value := range engine.Env {
			if !envName().MatchString(key) || strings.ContainsRune(value, 0) {
				all = append(all, option.Wrongf(field, "env: %s is no name of a variable", option.Quote(key)))
			}
		}
	}
	return all
}

var networks = []string{"", setting.NetworkNone, setting.NetworkBridge, setting.NetworkHost}

// enginesKind is a mapping with free keys.
var enginesKind = option.Kind[Engines]{
	Read: func(n option.Node) (Engines, bool) {
		all := Engines{}
		for _, e := range n.Entries("engines", "write engines or targets below it, such as docker: {address: unix:///run/docker.sock}") {
			var one engine
			e.Found("engines." + e.Key)
			option.ReadPart(e.Value, "engine "+option.Quote(e.Key), &one)
			all[e.Key] = setting.Engine(one)
		}
		return all, n.Mapping()
	},
	Schema: option.Schema{
		"type": "object", "propertyNames": option.Schema{"pattern": engineName().String()},
		"additionalProperties": option.Describe(option.Of(new(engine))),
	},
}

// engine is the part of a plan for one engine.
type engine setting.Engine

func (e *engine) Declare(s *option.Set) {
	option.Text(s, &e.Address, "address", "unix:///run/docker.sock; a socket's path is enough; of kubernetes: the CRI endpoint of the node that tare runs on")
	option.Text(s, &e.Namespace, "namespace", "namespace in containerd or a cluster")
	option.Text(s, &e.Command, "command", "the command line's program, by name or path")
	option.List(s, &e.Args, "args", "for the command line, before the verb")
	option.Var(s, &e.Env, "env", "for the command line", option.Texts("NAME"))
	option.Text(s, &e.Root, "root", "podman's --root")
	option.Text(s, &e.RunRoot, "runroot", "podman's --runroot")
	option.Text(s, &e.Network, "network", "network of containers: none, bridge or host; for pods, none means the host's network and bridge means CNI", option.Choices(networks[1:]...))
	option.Text(s, &e.Kubeconfig, "kubeconfig", "kubeconfig file for kubernetes, as for kubectl")
	option.Text(s, &e.Context, "context", "context of the kubeconfig")
	option.Text(s, &e.Node, "node", "node of a cluster for all pods")
	option.Text(s, &e.Image, "image", "image of the workload, present on the nodes of a cluster")
}
