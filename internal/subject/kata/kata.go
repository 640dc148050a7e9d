// Package kata recognises Kata Containers below any engine: its runtime's names, its processes
// and its configuration.
//
// Kata's processes run outside the containers: a shim per pod, a VMM (except for Dragonball,
// which is part of the shim), and two virtiofsd processes. Facts come from its configuration
// file (docs/design/host-cgroups.md of Kata for sandbox_cgroup_only).
package kata

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
)

// Is reports whether a runtime's name or path is Kata's: "kata", "kata-qemu",
// "io.containerd.kata.v2", "/usr/bin/kata-runtime".
func Is(runtime string) bool {
	name := strings.ToLower(filepath.Base(runtime))
	return name == "kata" || strings.HasPrefix(name, "kata-") || strings.HasPrefix(name, "kata_") || strings.Contains(name, ".kata.") || strings.Contains(name, ".kata-") || strings.Contains(name, "shim-kata-")
}

// Helpers returns the helper processes of containers or pods with these ids, with their roles.
func Helpers(ids []string) []subject.Process {
	var out []subject.Process
	for _, f := range procs.Mentioning(ids) {
		out = append(out, subject.Process{Role: f.Role, Pid: f.Pid})
	}
	return out
}

// configPaths are the default configuration files of the shims, in their order.
var configPaths = []string{
	"/etc/kata-containers/configuration.toml",
	"/usr/share/defaults/kata-containers/configuration.toml",
	"/opt/kata/share/defaults/kata-containers/configuration.toml",
	"/etc/kata-containers/runtime-rs/configuration.toml",
	"/usr/share/defaults/kata-containers/runtime-rs/configuration.toml",
	"/opt/kata/share/defaults/kata-containers/runtime-rs/configuration.toml",
}

// Facts returns a record's facts about Kata from a configuration file, named in "kata config":
// "hypervisor"; "sandbox_cgroup_only"; settings that affect starts ("enable_template",
// "vm_cache_number", "static_sandbox_resource_mgmt") and sizes ("default_memory",
// "default_vcpus", "debug_console_enabled"); and those of the VM (see vmFacts). An empty path
// stands for the file that a command with tare's environment would use: KATA_CONF_FILE, else
// the first existing default; see Shim for engines. If a file cannot be read, "kata config" has
// the reason.
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

// config is the part of configuration.toml that affects who is charged.
type config struct {
	Hypervisor map[string]any `toml:"hypervisor"`
	Runtime    struct {
		Name              string `toml:"name"`            // runtime-rs: "virt_container"
		HypervisorName    string `toml:"hypervisor_name"` // runtime-rs
		SandboxCgroupOnly *bool  `toml:"sandbox_cgroup_only"`
		StaticResources   *bool  `toml:"static_sandbox_resource_mgmt"`
	} `toml:"runtime"`
	Factory factory `toml:"factory"`
	Agent   map[string]struct {
		DebugConsole bool `toml:"debug_console_enabled"`
	} `toml:"agent"`
}

// factory configures sources of VMs other than booting. They are clones of a template, or a cache
// of booted VMs, which a server of Kata holds for the Go runtime
// (src/runtime/pkg/katautils/config.go; docs/how-to/what-is-vm-templating…, what-is-vm-cache…).
type factory struct {
	Template     bool   `toml:"enable_template"`
	TemplatePath string `toml:"template_path"`
	Cached       int64  `toml:"vm_cache_number"`
	Endpoint     string `toml:"vm_cache_endpoint"`
}

// The default locations.
const (
	templatePath  = "/run/vc/vm/template"
	cacheEndpoint = "/var/run/kata-containers/cache.sock"
)

// facts adds the active settings to into, and whether the template or cache exists. If it does not,
// VMs are booted.
func (f *factory) facts(into map[string]string) {
	into["enable_template"], into["vm_cache_number"] = strconv.FormatBool(f.Template), strconv.FormatInt(f.Cached, 10)
	there := func(key, path, file string) {
		into[key] = path
		if _, err := os.Stat(filepath.Join(path, file)); err != nil {
			into[key] += ", missing"
		}
	}
	if f.Template {
		there("template_path", cmp.Or(f.TemplatePath, templatePath), "memory")
	}
	if f.Cached > 0 {
		there("vm_cache_endpoint", cmp.Or(f.Endpoint, cacheEndpoint), "")
	}
}

// ofHypervisor reads the factory from the hypervisor's table, where newer versions of runtime-rs have
// it.
func (f *factory) ofHypervisor(settings map[string]any) {
	own, is := settings["factory"].(map[string]any)
	if !is {
		return
	}
	*f = factory{}
	f.Template, _ = own["enable_template"].(bool)
	f.TemplatePath, _ = own["template_path"].(string)
}

func read(path string) (map[string]string, error) {
	real, err := filepath.EvalSymlinks(path) // drop-ins are in the folder of the file itself
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
	if names := slices.Collect(maps.Keys(c.Hypervisor)); hypervisor == "" && len(names) == 1 {
		hypervisor = names[0]
	}
	hypervisor = cmp.Or(hypervisor, "unknown")
	// The default is false in the Go runtime and true in runtime-rs. Dragonball has no process of
	// its own, so it is always true.
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
		"debug_console_enabled": strconv.FormatBool(debug)}
	settings, _ := c.Hypervisor[hypervisor].(map[string]any)
	c.Factory.ofHypervisor(settings)
	c.Factory.facts(facts)
	if c.Runtime.StaticResources != nil {
		facts["static_sandbox_resource_mgmt"] = strconv.FormatBool(*c.Runtime.StaticResources)
	}
	vmFacts("", hypervisor, settings, facts)
	for _, key := range []string{"default_memory", "default_vcpus"} {
		if v, ok := settings[key]; ok {
			facts[key] = fmt.Sprint(v)
		}
	}
	return facts, nil
}

func decode(file string, into *config) error {
	const most = 1 << 20
	text, err := machine.ReadPlain(file, 0, most+1)
	if err != nil {
		return fmt.Errorf("read Kata's configuration: %w", err)
	}
	if err = toml.Unmarshal(text, into); len(text) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	if err != nil {
		return fmt.Errorf("read Kata's configuration %s: %w", file, err)
	}
	return nil
}
