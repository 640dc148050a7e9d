package kata

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestKataIsKnownByItsNames(t *testing.T) {
	for name, want := range map[string]bool{
		"kata": true, "kata-qemu": true, "kata-clh": true, "io.containerd.kata.v2": true, "io.containerd.kata-fc.v2": true, "/usr/bin/kata-runtime": true,
		"containerd-shim-kata-v2": true, "runc": false, "katana": false, "": false,
	} {
		if Is(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestProcessesOfALiveSandboxGetTheirRoles(t *testing.T) {
	b, err := os.ReadFile("testdata/ps.txt")
	must.OK(t, err)
	var got []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		role, ok := procs.Beside(filepath.Base(fields[5]), fields[6:])
		if !ok {
			role = "none"
		}
		got = append(got, string(role))
	}
	// vhost-device-vsock, the fourth, is none of the roles.
	if want := "shim virtiofs vmm none virtiofs"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestAConfigurationTellsWhoIsCharged(t *testing.T) {
	for name, c := range map[string]struct{ file, dropIn, hypervisor, only string }{
		"the Go runtime's default is false":     {file: "[hypervisor.qemu]\npath='x'\n[runtime]\n", hypervisor: "qemu", only: "false"},
		"what is written holds":                 {file: "[hypervisor.clh]\n[runtime]\nsandbox_cgroup_only=true\n", hypervisor: "clh", only: "true"},
		"a drop-in overrides":                   {file: "[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only=false\n", dropIn: "[runtime]\nsandbox_cgroup_only=true\n", hypervisor: "qemu", only: "true"},
		"runtime-rs's default is true":          {file: "[hypervisor.qemu]\n[runtime]\nname='virt_container'\nhypervisor_name='qemu'\n", hypervisor: "qemu", only: "true"},
		"Dragonball knows nothing else":         {file: "[runtime]\nname='virt_container'\nhypervisor_name='dragonball'\nsandbox_cgroup_only=false\n", hypervisor: "dragonball", only: "true"},
		"a file without a hypervisor says that": {file: "[runtime]\n", hypervisor: "unknown", only: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := file(t, dir, "configuration.toml", c.file)
			if c.dropIn != "" {
				file(t, dir, "config.d/10-x.toml", c.dropIn)
			}
			got := Facts(path)
			if got["enable_template"] != "false" || got["debug_console_enabled"] != "false" {
				t.Errorf("what is not written is off: %v", got)
			}
			if got["hypervisor"] != c.hypervisor || got["sandbox_cgroup_only"] != c.only || got["kata config"] != path {
				t.Errorf("%v", got)
			}
		})
	}
	if got := Facts("/no/such/file"); got["hypervisor"] != "" || !strings.Contains(got["kata config"], "no such file") {
		t.Errorf("a file that is not there: %v", got)
	}
}

func TestAConfigurationTellsWhatVMsAreTakenFrom(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	file(t, made, "memory", "")
	const qemu = "[hypervisor.qemu]\npath = \"/usr/bin/qemu-system-x86_64\"\n"
	for name, c := range map[string]struct {
		text string
		want map[string]string
	}{
		"nothing": {qemu + "[factory]\n#enable_template = true\n#vm_cache_number = 0\n", map[string]string{"enable_template": "false", "vm_cache_number": "0"}},
		"a template that is there": {qemu + "[factory]\nenable_template = true\ntemplate_path = '" + made + "'\n",
			map[string]string{"enable_template": "true", "vm_cache_number": "0", "template_path": made}},
		"a template that nobody made": {qemu + "[factory]\nenable_template = true\ntemplate_path = '" + made + "/x'\n",
			map[string]string{"enable_template": "true", "vm_cache_number": "0", "template_path": made + "/x, which is not there now"}},
		"a template, and sizes": {"[hypervisor.qemu]\ndefault_memory = 2048\ndefault_vcpus = 1.0\n[agent.kata]\ndebug_console_enabled = true\n[factory]\nenable_template = true\ntemplate_path = '" + made + "'\n",
			map[string]string{"enable_template": "true", "vm_cache_number": "0", "template_path": made, "debug_console_enabled": "true", "default_memory": "2048", "default_vcpus": "1"}},
		"a cache of VMs": {qemu + "[factory]\nvm_cache_number = 3\nvm_cache_endpoint = '" + made + "'\n",
			map[string]string{"enable_template": "false", "vm_cache_number": "3", "vm_cache_endpoint": made}},
		"a cache whose server does not run": {qemu + "[factory]\nvm_cache_number = 3\nvm_cache_endpoint = '" + made + "/sock'\n",
			map[string]string{"enable_template": "false", "vm_cache_number": "3", "vm_cache_endpoint": made + "/sock, which is not there now"}},
		"runtime-rs's, below the hypervisor": {qemu + "[hypervisor.qemu.factory]\nenable_template = true\ntemplate_path = '" + made + "'\n[factory]\nvm_cache_number = 2\n[runtime]\nname = 'virt_container'\nhypervisor_name = 'qemu'\nstatic_sandbox_resource_mgmt = true\n",
			map[string]string{"enable_template": "true", "vm_cache_number": "0", "template_path": made, "static_sandbox_resource_mgmt": "true"}},
	} {
		got := Facts(file(t, t.TempDir(), "configuration.toml", c.text))
		for _, key := range []string{"enable_template", "template_path", "vm_cache_number", "vm_cache_endpoint", "static_sandbox_resource_mgmt", "default_memory", "default_vcpus", "debug_console_enabled"} {
			if got[key] != cmp.Or(c.want[key], map[string]string{"debug_console_enabled": "false"}[key]) {
				t.Errorf("%s: %s is %q, want %q (%v)", name, key, got[key], c.want[key], got)
			}
		}
	}
	if got := Facts(file(t, t.TempDir(), "configuration.toml", qemu+"[factory]\nenable_template = true\n")); !strings.HasPrefix(got["template_path"], "/run/vc/vm/template") {
		t.Errorf("where nothing is said of it the template is %q", got["template_path"])
	}
}
