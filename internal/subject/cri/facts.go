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

// facts is the part of an engine's configuration that the engine reports. Unreported settings
// are zero.
type facts struct {
	handlers      map[string]handler
	standard      string // the default handler
	pause         string // the pause image
	cgroups       string // "cgroupfs" or "systemd"
	snapshotter   string // of containerd
	storage       storage
	podless       bool              // CRI-O omits the pause process where possible
	more          map[string]string // further settings that affect starts
	networkReady  bool
	networkReason string
	has           func(handler string) bool // whether an unlisted handler exists; nil: unknown
	hides         time.Duration             // see engine.CallHider
	logs          string                    // the folder of the engine's logs, if CRI's logs are links to them
}

// handler is a runtime handler.
type handler struct {
	kind   string // "io.containerd.runc.v2", "oci", "vm"
	path   string
	shim   string // the shim that the engine starts: a path, or a name on its PATH; "" if unknown
	config string // the configuration file that the engine passes to it; "" for none

	configKnown bool   // the engine reports config
	snapshotter string // its own, instead of the engine's; "" for none
	sandboxer   string // "podsandbox" or "shim"; "" if unknown
}

// storage is where the engine stores layers. CRI-O shares its storage with skopeo and podman, so
// for CRI-O it includes the storage options.
type storage struct {
	driver, root, runroot string
	options               []string
}

// ask collects the facts. Only Status is required.
func (c *connection) ask(ctx context.Context, engineName string) (facts, error) {
	f := facts{handlers: map[string]handler{}}
	status, err := c.runtime.Status(ctx, &api.StatusRequest{Verbose: true})
	if err != nil {
		return f, fmt.Errorf("ask for its status: %w", err)
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if condition.Type == api.RuntimeReady && !condition.Status {
			return f, fmt.Errorf("the engine is not ready: %s %s", condition.Reason, condition.Message)
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
		f.storage.root = c.layersRoot(ctx)
	}
	if engineName == dockerdEngine {
		f.logs = f.storage.root
	}
	return f, err
}

// layersRoot returns the folder with the layers of containers: the root of containerd's
// snapshotter, of iSulad or of docker. It returns "" if the engine does not report it.
func (c *connection) layersRoot(ctx context.Context) string {
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

// containerdConfig is the relevant part of the CRI plugin's configuration, in the form up to
// 1.7.
type containerdConfig struct {
	Containerd struct {
		Snapshotter string `json:"snapshotter"`
		Default     string `json:"defaultRuntimeName"`
		Runtimes    map[string]struct {
			Type    string  `json:"runtimeType"`
			Path    string  `json:"runtimePath"`
			Options options `json:"options"`

			Snapshotter string `json:"snapshotter"` // since 1.7
			Sandboxer   string `json:"sandboxer"`   // since 2.0
			SandboxMode string `json:"sandboxMode"` // the same in 1.7
		} `json:"runtimes"`
	} `json:"containerd"`
	Pause string `json:"sandboxImage"`
}

// fromContainerd parses the configuration in containerd's Status.
func (f *facts) fromContainerd(text string) {
	var config containerdConfig
	if json.Unmarshal([]byte(text), &config) != nil {
		return
	}
	f.standard, f.snapshotter, f.pause = config.Containerd.Default, config.Containerd.Snapshotter, config.Pause
	for name, r := range config.Containerd.Runtimes {
		h := handler{kind: r.Type, path: r.Path, shim: cmp.Or(r.Path, containerd.ShimProgram(r.Type))}
		h.config, h.configKnown = r.Options.configPath(r.Type)
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

// fromDump reads the image settings of containerd 2 from `containerd config dump`, which fills
// in the defaults. Status does not have these settings. If the daemon's files are not
// accessible, fromDump sets nothing.
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

// argument returns the value of a daemon's flag, or other if the flag is not set.
func argument(pid int, other string, flags ...string) string {
	return cmp.Or(procs.Flag(procs.ArgsOf(pid), flags...), other)
}

// fromIsulad reads isulad's configuration file, since its Status has no configuration. A handler
// that is not in isulad's list of CRI runtimes is itself the name of a runtime.
func (f *facts) fromIsulad(socket string) {
	f.hides = isuladHides
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
	f.has = config.Has
}

// fromDockerd reads cri-dockerd's command line, since its Status has no configuration.
func (f *facts) fromDockerd(socket string) {
	pid, _ := procs.Listener(socket)
	f.pause = argument(pid, "", "--pod-infra-container-image")
}

// Runtimes lists the handlers of an engine, its default first. If the engine does not report
// them, the list has one empty name, the default. If the engine is unavailable, the error is a
// *subject.Unavailable.
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
