package isula

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/containerd"
)

// DaemonConfig is the path of isulad's configuration, in its mounts. Tests that listen in place
// of isulad change it, since the machine may have a real one.
var DaemonConfig = "/etc/isulad/daemon.json"

// Config is the relevant part of it, overridden by the daemon's command line.
type Config struct {
	Default     string         `json:"default-runtime"`
	Runtimes    map[string]any `json:"runtimes"`
	CRIRuntimes map[string]any `json:"cri-runtimes"` // by their names in CRI
	Pause       string         `json:"pod-sandbox-image"`
	Systemd     bool           `json:"systemd-cgroup"`
	Driver      string         `json:"storage-driver"`
	Graph       string         `json:"graph"` // its data folder, logs included
}

// builtIn are the runtimes that isulad knows without configuration (runtime_check in its
// src/daemon/executor/container_cb/execution_create.c). The first is its default since 2.1.4.
var builtIn = []string{"runc", "lcr", "kata-runtime"}

// ConfigOf reads the configuration of the daemon that listens on a socket; nil if unavailable.
func ConfigOf(socket string) *Config {
	d, err := containerd.DaemonOf(socket)
	if err != nil {
		return nil
	}
	defer d.Close()
	c := new(Config)
	text, err := machine.Root(d.File("root")).Read(DaemonConfig, 1<<20)
	if err != nil || json.Unmarshal(text, c) != nil {
		return nil
	}
	c.Default = cmp.Or(procs.Flag(procs.ArgsOf(d.Pid), "--default-runtime"), c.Default, builtIn[0])
	c.Graph = cmp.Or(procs.Flag(procs.ArgsOf(d.Pid), "--graph", "-g"), c.Graph, "/var/lib/isulad")
	return c
}

// Names returns the configured runtimes, the default first.
func (c *Config) Names() []string {
	rest := slices.Sorted(maps.Keys(c.Runtimes))
	return append([]string{c.Default}, slices.DeleteFunc(rest, func(name string) bool { return name == c.Default })...)
}

// Path returns the configured program of a runtime, or its name, which isulad finds on its PATH.
func (c *Config) Path(runtime string) string {
	one, _ := c.Runtimes[cmp.Or(runtime, c.Default)].(map[string]any)
	path, _ := one["path"].(string)
	return cmp.Or(path, runtime, c.Default)
}

// Has reports whether a runtime exists: a configured or built-in one, or a shim by its full name.
func (c *Config) Has(runtime string) bool {
	return slices.Contains(c.Names(), runtime) || slices.Contains(builtIn, runtime) || strings.HasPrefix(runtime, "io.containerd.")
}
