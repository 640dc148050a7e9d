package terms

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// engineFlags are the flags for reaching engines. Unset flags default to the behavior of the
// engines' own command lines.
type engineFlags struct {
	settings  []string // of ofOne
	network   string
	cri, args []string
}

// ofOne lists flags that set one field of one or several engines.
var ofOne = []struct {
	flag, engines, help string
	setting             func(*setting.Engine) *string
}{
	{"docker-host", "docker", "address of dockerd, or of podman's service, unix:///run/podman/podman.sock (default: $DOCKER_HOST, else dockerd's usual socket)", address},
	{"containerd-address", "containerd", "socket of containerd (default, and of cri+containerd: $CONTAINERD_ADDRESS, else its usual one)", address},
	{"isula-host", "isula", "address of isulad (default: $ISULAD_HOST, else its usual socket)", address},
	{"namespace", "containerd kubernetes", "namespace in containerd or the cluster for objects that tare creates", func(e *setting.Engine) *string { return &e.Namespace }},
	{"kubeconfig", "kubernetes", "kubeconfig file (default: as for kubectl, $KUBECONFIG, else ~/.kube/config, else the pod's service account)", func(e *setting.Engine) *string { return &e.Kubeconfig }},
	{"context", "kubernetes", "kubeconfig context (default: the current one)", func(e *setting.Engine) *string { return &e.Context }},
	{"node", "kubernetes", "node for all pods (default: this machine if it is a node and --image is not set, otherwise chosen by the scheduler)", func(e *setting.Engine) *string { return &e.Node }},
	{"node-cri", "kubernetes", "CRI endpoint of this node (default: the engine's usual socket)", address},
	{"image", "kubernetes", "image of the workload: an archive (docker save, OCI layout), or a name that one of the engines has; a name with kubernetes among the targets: one of tare's own that the nodes have (default: tare's own)", func(e *setting.Engine) *string { return &e.Image }},
	{"podman-root", "podman", "podman's --root", func(e *setting.Engine) *string { return &e.Root }},
	{"podman-runroot", "podman", "podman's --runroot", func(e *setting.Engine) *string { return &e.RunRoot }},
}

func address(e *setting.Engine) *string { return &e.Address }

func (f *engineFlags) declare(s *option.Set, w *Whom) {
	f.settings = make([]string, len(ofOne))
	for i, o := range ofOne {
		option.Text(s, &f.settings[i], "", o.help, option.Flag(o.flag))
	}
	many := option.Repeated(option.ListOf(option.TextOf[string]()))
	option.Var(s, &f.cri, "", "CRI endpoint, unix:///SOCKET or NAME=unix:///SOCKET, measured as cri+NAME; can be repeated", many, option.Flag("cri"))
	option.Text(s, &f.network, "", "network of containers: none, bridge or host (default: none; pods: host, with bridge CNI)", option.Flag("network"))
	option.Var(s, &f.args, "", "argument for an engine's command line, before the verb, as ENGINE=ARGUMENT; can be repeated", many, option.Flag("engine-arg"))
	s.Before(func(ctx context.Context) error { return f.apply(ctx, s, w) })
}

// apply applies the flags to the engines. It adds CRI endpoints to the targets unless the plan names
// them.
func (f *engineFlags) apply(ctx context.Context, s *option.Set, w *Whom) error {
	change := func(name string, to func(*setting.Engine)) {
		e := w.Engines[name]
		to(&e)
		if w.Engines == nil {
			w.Engines = Engines{}
		}
		w.Engines[name] = e
	}
	for i, o := range ofOne {
		if s.Given(o.flag) {
			for name := range strings.FieldsSeq(o.engines) {
				change(name, func(e *setting.Engine) { *o.setting(e) = f.settings[i] })
			}
		}
	}
	for _, arg := range f.args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || !slices.Contains(setting.EngineNames, name) {
			return option.WrongFlag("engine-arg", "%s is not ENGINE=ARGUMENT; the engines are %s", option.Quote(arg), strings.Join(setting.EngineNames, ", "))
		}
		change(name, func(e *setting.Engine) { e.Args = append(slices.Clip(e.Args), value) })
	}
	for _, endpoint := range f.cri {
		name, address, err := w.criEndpoint(ctx, endpoint)
		if err != nil {
			return err
		}
		change("cri+"+name, func(e *setting.Engine) { e.Address = address })
		named := slices.ContainsFunc(w.Targets, func(t string) bool { return t == "cri+"+name || strings.HasPrefix(t, "cri+"+name+"/") })
		if !s.FromFile() && !named {
			w.Targets = append(slices.Clip(w.Targets), "cri+"+name)
		}
	}
	if !s.Given("network") {
		return nil
	}
	if !slices.Contains(networks, f.network) {
		return option.WrongFlag("network", "%s is not one of none, bridge, host", option.Quote(f.network))
	}
	for _, name := range setting.EngineNames {
		change(name, func(e *setting.Engine) { e.Network = f.network })
	}
	for name := range w.Engines {
		change(name, func(e *setting.Engine) { e.Network = f.network })
	}
	return nil
}

func ofCluster(target string) bool {
	return target == "kubernetes" || strings.HasPrefix(target, "kubernetes/")
}

// criEndpoint splits NAME=ADDRESS. Without a name it asks the endpoint for its name.
func (w *Whom) criEndpoint(ctx context.Context, s string) (name, address string, err error) {
	if before, after, ok := strings.Cut(s, "="); ok && !strings.Contains(before, "/") {
		return before, after, nil
	}
	if w.identify == nil {
		return "", "", option.WrongFlag("cri", "%s has no name: write NAME=%s", option.Quote(s), s)
	}
	if name, err = w.identify(ctx, s); err != nil {
		return "", "", fmt.Errorf("--cri %s: %w; where it may be missing, name it: --cri NAME=%s --missing skip", s, err, s)
	}
	return name, s, nil
}

// Reach declares the settings for reaching engines, for commands that measure nothing.
type Reach struct{ Whom }

// Declare declares the engine flags.
func (r *Reach) Declare(s *option.Set) {
	r.declareVia(s)
	new(engineFlags).declare(s, &r.Whom)
}
