package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/isula"
)

// facts are what an engine tells of its configuration. What it does not tell is
// empty.
type facts struct {
	handlers      map[string]handler
	standard      string // the handler that an empty name stands for
	pause         string // the image of the process that holds a pod
	cgroups       string // "cgroupfs" or "systemd"
	snapshotter   string // of containerd
	storage       storage
	podless       bool              // CRI-O leaves out the process of pods that need none
	more          map[string]string // of its configuration what decides of a start
	networkReady  bool
	networkReason string
	known         func(handler string) bool // of one that is not among handlers; nil: unknown
	deaf          time.Duration             // see engine.Deaf
	logs          string                    // the folder of the engine's own logs, where CRI's are links to those
}

// handler is a runtime handler.
type handler struct {
	kind   string // "io.containerd.runc.v2", "oci", "vm"
	path   string
	shim   string // the shim that the engine starts, a path or a name on its PATH; "" unknown
	config string // the configuration file that the engine names to it; "" for none
	told   bool   // the engine tells whether it names one

	snapshotter string // of its own, in place of the engine's; "" for none
	sandboxer   string // who makes its pods, "podsandbox" or "shim"; "" unknown
}

// storage is where the engine stores; of CRI-O, which shares that with skopeo and podman,
// also how.
type storage struct {
	driver, root, runroot string
	options               []string
}

// ask collects the facts. Only the status itself has to be there.
func (c *connection) ask(ctx context.Context, engineName string) (facts, error) {
	f := facts{handlers: map[string]handler{}}
	status, err := c.runtime.Status(ctx, &api.StatusRequest{Verbose: true})
	if err != nil {
		return f, fmt.Errorf("ask for its status: %w", err)
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if condition.Type == api.RuntimeReady && !condition.Status {
			return f, fmt.Errorf("the engine says that it is not ready: %s %s", condition.Reason, condition.Message)
		}
		if condition.Type == api.NetworkReady {
			f.networkReady, f.networkReason = condition.Status, strings.TrimSpace(condition.Reason+" "+condition.Message)
		}
	}
	for _, h := range status.RuntimeHandlers {
		if h.Name != "" {
			f.handlers[h.Name] = handler{}
		}
	}
	if config, err := c.runtime.RuntimeConfig(ctx, &api.RuntimeConfigRequest{}); err == nil && config.Linux != nil {
		f.cgroups = strings.ToLower(config.Linux.CgroupDriver.String())
	}
	switch engineName {
	case containerdEngine:
		f.fromContainerd(status.Info["config"])
		if f.pause == "" {
			f.fromDump(ctx, c.socket)
		}
	case crioEngine:
		err = f.fromCRIO(ctx, c.socket)
	case isuladEngine:
		f.fromIsulad(c.socket)
	case dockerdEngine:
		f.fromDockerd(c.socket)
	}
	if f.storage.root == "" {
		f.storage.root = c.stores(ctx)
	}
	if engineName == dockerdEngine {
		f.logs = f.storage.root
	}
	return f, err
}

// stores is the folder of what containers write, "" where the engine does not tell: the
// root of containerd's snapshotter, iSulad's and docker's own.
func (c *connection) stores(ctx context.Context) string {
	reply, _ := ask(ctx, "ImageFsInfo", c.images.ImageFsInfo, &api.ImageFsInfoRequest{})
	for _, fs := range slices.Concat(reply.GetContainerFilesystems(), reply.GetImageFilesystems()) { // the former since CRI of Kubernetes 1.29
		if where := fs.GetFsId().GetMountpoint(); where != "" {
			return where
		}
	}
	return ""
}

// names lists the handlers, the default first.
func (f *facts) names() []string {
	out := slices.Sorted(maps.Keys(f.handlers))
	if i := slices.Index(out, f.standard); i > 0 {
		out = slices.Insert(slices.Delete(out, i, i+1), 0, f.standard)
	}
	return out
}

// containerdConfig is the part of the CRI plugin's configuration that matters
// here; up to 1.7 it is all in one.
type containerdConfig struct {
	Containerd struct {
		Snapshotter string `json:"snapshotter"`
		Default     string `json:"defaultRuntimeName"`
		Runtimes    map[string]struct {
			Type    string  `json:"runtimeType"`
			Path    string  `json:"runtimePath"`
			Options options `json:"options"`

			Snapshotter string `json:"snapshotter"` // from 1.7 on
			Sandboxer   string `json:"sandboxer"`   // from 2.0 on
			SandboxMode string `json:"sandboxMode"` // 1.7's word for it
		} `json:"runtimes"`
	} `json:"containerd"`
	Pause string `json:"sandboxImage"`
}

// fromContainerd reads what containerd says in Status.
func (f *facts) fromContainerd(text string) {
	var config containerdConfig
	if json.Unmarshal([]byte(text), &config) != nil {
		return
	}
	f.standard, f.snapshotter, f.pause = config.Containerd.Default, config.Containerd.Snapshotter, config.Pause
	for name, r := range config.Containerd.Runtimes {
		h := handler{kind: r.Type, path: r.Path, shim: cmp.Or(r.Path, containerd.ShimProgram(r.Type))}
		h.config, h.told = r.Options.configPath(r.Type)
		h.snapshotter, h.sandboxer = r.Snapshotter, cmp.Or(r.Sandboxer, r.SandboxMode)
		if binary, _ := r.Options.values["BinaryName"].(string); binary != "" {
			h.path = binary
		}
		f.handlers[name] = h
		if systemd, known := r.Options.values["SystemdCgroup"].(bool); known && f.cgroups == "" && (name == f.standard || f.standard == "") {
			f.cgroups = map[bool]string{true: "systemd", false: "cgroupfs"}[systemd]
		}
	}
	if f.cgroups == "" && len(f.handlers) > 0 {
		f.cgroups = "cgroupfs" // the shim's own default
	}
}

// fromDump reads what containerd 2 does not say in Status: it is in the part
// for images, which its own program prints with all defaults filled in. Whoever is not
// trusted with that is asked for no more.
func (f *facts) fromDump(ctx context.Context, socket string) {
	d, err := containerd.DaemonOf(socket)
	if err != nil {
		return
	}
	defer d.Close()
	config := filepath.Join(d.File("root"), argument(d.Pid, "/etc/containerd/config.toml", "--config", "-c"))
	program := cli.Program{Path: d.File("exe"), Args: []string{"--config", config}}
	out, err := program.Run(ctx, "config", "dump")
	if err != nil {
		return
	}
	var dump struct {
		Plugins struct {
			Images struct {
				Snapshotter string            `toml:"snapshotter"`
				Pinned      map[string]string `toml:"pinned_images"`
			} `toml:"io.containerd.cri.v1.images"`
		} `toml:"plugins"`
	}
	if toml.Unmarshal(out, &dump) == nil {
		f.pause, f.snapshotter = dump.Plugins.Images.Pinned["sandbox"], dump.Plugins.Images.Snapshotter
	}
}

// argument is the value of a daemon's flag, or other.
func argument(pid int, other string, flags ...string) string {
	return cmp.Or(procs.Flag(procs.ArgsOf(pid), flags...), other)
}

// fromIsulad reads the daemon's configuration, since it does not tell. A handler
// that CRI has no name of its own for is a runtime's name.
func (f *facts) fromIsulad(socket string) {
	f.deaf = isuladDeaf
	config := isula.ConfigOf(socket)
	if config == nil {
		return
	}
	f.pause, f.storage.driver, f.standard, f.logs = config.Pause, config.Driver, config.Default, config.Graph
	f.cgroups = map[bool]string{true: "systemd", false: "cgroupfs"}[config.Systemd]
	for name, kind := range config.CRIRuntimes {
		text, _ := kind.(string)
		f.handlers[name] = handler{kind: text}
	}
	for _, name := range config.Names() {
		if _, is := f.handlers[name]; !is {
			f.handlers[name] = handler{kind: "oci", path: config.Path(name)}
		}
	}
	f.known = config.Has
}

// fromDockerd reads cri-dockerd's command line, since it does not tell.
func (f *facts) fromDockerd(socket string) {
	if pid, err := procs.Listener(socket); err == nil {
		f.pause = argument(pid, "", "--pod-infra-container-image")
	}
}

// Runtimes lists the handlers of an engine, its default first; one empty name,
// which stands for the default, when it does not tell. The error is a
// *subject.Unavailable when the engine is not there.
func Runtimes(ctx context.Context, engineName string, e subject.Engine) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := criName(engineName)
	c, _, err := open(ctx, name, engineName, e)
	if err != nil {
		return nil, err
	}
	defer c.close()
	f, err := c.ask(ctx, engineName)
	if err != nil {
		return nil, engine.Unavailable(name, "see the engine's log", "%v", err)
	}
	if len(f.handlers) == 0 {
		return []string{""}, nil
	}
	return f.names(), nil
}
