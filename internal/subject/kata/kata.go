// Package kata recognises Kata Containers below any engine: its runtime's
// names, its processes, and what its configuration says.
//
// Kata's processes stand outside the containers: a shim for each pod, a VMM
// (none with Dragonball, which lives in the shim), and virtiofsd, parent and
// child. Facts come from its configuration file, as its documentation describes
// it (docs/design/host-cgroups.md for sandbox_cgroup_only).
package kata

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
)

// Is tells by its name or path whether a runtime is Kata: "kata", "kata-qemu",
// "io.containerd.kata.v2", "/usr/bin/kata-runtime".
func Is(runtime string) bool {
	name := strings.ToLower(filepath.Base(runtime))
	return name == "kata" || strings.HasPrefix(name, "kata-") || strings.HasPrefix(name, "kata_") || strings.Contains(name, ".kata.") || strings.Contains(name, ".kata-") || strings.Contains(name, "shim-kata-")
}

// Beside returns the processes that stand beside containers or pods of the
// given ids, with their roles.
func Beside(ids []string) []subject.Process {
	var out []subject.Process
	for _, f := range procs.Mentioning(ids) {
		out = append(out, subject.Process{Role: f.Role, Pid: f.Pid})
	}
	return out
}

// configPaths are where the shims look for their configuration, in their order.
var configPaths = []string{
	"/etc/kata-containers/configuration.toml",
	"/usr/share/defaults/kata-containers/configuration.toml",
	"/opt/kata/share/defaults/kata-containers/configuration.toml",
	"/etc/kata-containers/runtime-rs/configuration.toml",
	"/usr/share/defaults/kata-containers/runtime-rs/configuration.toml",
	"/opt/kata/share/defaults/kata-containers/runtime-rs/configuration.toml",
}

// Facts are what a record says of Kata: "hypervisor", "sandbox_cgroup_only", what
// decides of a start ("enable_template") and of a sandbox's size ("default_memory",
// "default_vcpus", "debug_console_enabled"), and "kata config", the file that was read. An empty path stands for the file that
// a command of tare's own surroundings would take: KATA_CONF_FILE's, else the
// first of the usual ones; of what an engine starts, see Shim. What cannot be
// read is said under "kata config".
func Facts(path string) map[string]string {
	if path == "" {
		path = os.Getenv("KATA_CONF_FILE")
	}
	for _, p := range configPaths {
		if _, err := os.Stat(p); path == "" && err == nil {
			path = p
		}
	}
	if path == "" {
		return map[string]string{"kata config": "not found; looked for " + strings.Join(configPaths, ", ")}
	}
	facts, err := read(path)
	if err != nil {
		return map[string]string{"kata config": err.Error()}
	}
	facts["kata config"] = path
	return facts
}

// config is the part of configuration.toml that changes who is charged.
type config struct {
	Hypervisor map[string]any `toml:"hypervisor"`
	Runtime    struct {
		Name              string `toml:"name"`            // runtime-rs: "virt_container"
		HypervisorName    string `toml:"hypervisor_name"` // runtime-rs
		SandboxCgroupOnly *bool  `toml:"sandbox_cgroup_only"`
	} `toml:"runtime"`
	Factory struct {
		EnableTemplate bool `toml:"enable_template"`
	} `toml:"factory"`
	Agent map[string]struct {
		DebugConsole bool `toml:"debug_console_enabled"`
	} `toml:"agent"`
}

func read(path string) (map[string]string, error) {
	real, err := filepath.EvalSymlinks(path) // drop-ins lie beside the file itself
	if err != nil {
		return nil, fmt.Errorf("read Kata's configuration: %w", err)
	}
	var c config
	dropIns, _ := filepath.Glob(filepath.Join(filepath.Dir(real), "config.d", "*.toml"))
	slices.Sort(dropIns)
	for _, file := range append([]string{real}, dropIns...) {
		if err := decode(file, &c); err != nil {
			return nil, err
		}
	}
	hypervisor := c.Runtime.HypervisorName
	if hypervisor == "" && len(c.Hypervisor) == 1 {
		for name := range c.Hypervisor {
			hypervisor = name
		}
	}
	if hypervisor == "" {
		hypervisor = "unknown"
	}
	// The Go runtime's default is false, runtime-rs's is true, and Dragonball,
	// which has no process of its own, knows nothing else.
	only := c.Runtime.Name != "" || c.Runtime.HypervisorName != "" || strings.Contains(real, "runtime-rs")
	if c.Runtime.SandboxCgroupOnly != nil {
		only = *c.Runtime.SandboxCgroupOnly
	}
	if hypervisor == "dragonball" {
		only = true
	}
	debug := false
	for _, agent := range c.Agent {
		debug = debug || agent.DebugConsole
	}
	facts := map[string]string{"hypervisor": hypervisor, "sandbox_cgroup_only": strconv.FormatBool(only),
		"enable_template": strconv.FormatBool(c.Factory.EnableTemplate), "debug_console_enabled": strconv.FormatBool(debug)}
	settings, _ := c.Hypervisor[hypervisor].(map[string]any)
	for _, key := range []string{"default_memory", "default_vcpus"} {
		if v, ok := settings[key]; ok {
			facts[key] = fmt.Sprint(v)
		}
	}
	return facts, nil
}

func decode(file string, into *config) error {
	const most = 1 << 20
	f, err := open(file)
	if err != nil {
		return fmt.Errorf("read Kata's configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err == nil {
		err = toml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read Kata's configuration %s: %w", file, err)
	}
	return nil
}
