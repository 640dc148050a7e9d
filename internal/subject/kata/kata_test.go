package kata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestIsRecognizesNamesOfKata(t *testing.T) {
	for name, want := range map[string]bool{
		"kata": true, "kata-qemu": true, "kata-clh": true, "io.containerd.kata.v2": true, "io.containerd.kata-fc.v2": true, "/usr/bin/kata-runtime": true,
		"containerd-shim-kata-v2": true, "runc": false, "katana": false, "": false,
	} {
		check.Equal(t, name, Is(name), want)
	}
}

func TestHelpersHaveTheirRoles(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/ps.txt"))(t)
	var got []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		role := procs.HelperRole(filepath.Base(fields[5]), fields[6:])
		if role == "" {
			role = "none"
		}
		got = append(got, string(role))
	}
	// The fourth process, vhost-device-vsock, has no role.
	check.Equal(t, "roles", strings.Join(got, " "), "shim virtiofs vmm none virtiofs")
}

func TestFactsOfConfigurations(t *testing.T) {
	for name, c := range map[string]struct{ file, dropIn, hypervisor, only string }{
		"default of the Go runtime is false": {file: "[hypervisor.qemu]\npath='x'\n[runtime]\n", hypervisor: "qemu", only: "false"},
		"explicit value":                     {file: "[hypervisor.clh]\n[runtime]\nsandbox_cgroup_only=true\n", hypervisor: "clh", only: "true"},
		"drop-in overrides the value":        {file: "[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only=false\n", dropIn: "[runtime]\nsandbox_cgroup_only=true\n", hypervisor: "qemu", only: "true"},
		"default of runtime-rs is true":      {file: "[hypervisor.qemu]\n[runtime]\nname='virt_container'\nhypervisor_name='qemu'\n", hypervisor: "qemu", only: "true"},
		"Dragonball is always true":          {file: "[runtime]\nname='virt_container'\nhypervisor_name='dragonball'\nsandbox_cgroup_only=false\n", hypervisor: "dragonball", only: "true"},
		"file without a hypervisor":          {file: "[runtime]\n", hypervisor: "unknown", only: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := file(t, dir, "configuration.toml", c.file)
			if c.dropIn != "" {
				file(t, dir, "config.d/10-x.toml", c.dropIn)
			}
			got := Facts(path)
			if got["enable_template"] != "false" || got["debug_console_enabled"] != "false" {
				t.Errorf("missing settings are off: %v", got)
			}
			if got["hypervisor"] != c.hypervisor || got["sandbox_cgroup_only"] != c.only || got["kata config"] != path {
				t.Errorf("%v", got)
			}
		})
	}
	if got := Facts("/no/such/file"); got["hypervisor"] != "" || !strings.Contains(got["kata config"], "no such file") {
		t.Errorf("missing file: %v", got)
	}
}

// MADE in a case stands for an existing folder.
func TestFactsOfFactories(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	file(t, made, "memory", "")
	golden.Cases(t, "testdata/factory.txt", func(t *testing.T, input string) string {
		facts := Facts(file(t, t.TempDir(), "configuration.toml", strings.ReplaceAll(input, "MADE", made)))
		for _, key := range []string{"kata config", "acceleration", "emulated", "hypervisor version"} { // these depend on the machine
			delete(facts, key)
		}
		return strings.ReplaceAll(fmt.Sprint(facts), made, "MADE")
	})
	template := file(t, t.TempDir(), "configuration.toml", "[hypervisor.qemu]\n[factory]\nenable_template = true\n")
	if got := Facts(template); !strings.HasPrefix(got["template_path"], "/run/vc/vm/template") {
		t.Errorf("default template path: %q", got["template_path"])
	}
}

const elf = "\x7fELF\x02\x01\x01"

// file writes a file below a folder and returns its path.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)))
	return path
}

func TestShimFactsComeFromTheConfiguredFile(t *testing.T) {
	dir := t.TempDir()
	no := file(t, dir, "no.toml", "[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only=false\n")
	yes := file(t, dir, "yes.toml", "[hypervisor.clh]\n[runtime]\nsandbox_cgroup_only=true\n")
	shim := file(t, dir, "containerd-shim-kata-v2", elf)
	linked := filepath.Join(dir, "containerd-shim-kata-clh-v2")
	must.OK(t, os.Symlink(shim, linked))
	wrapper := file(t, dir, "containerd-shim-kata-qemu-v2", "#!/bin/sh\nKATA_CONF_FILE="+yes+" exec "+shim+" \"$@\"\n")
	another := file(t, dir, "containerd-shim-kata-fc-v2", elf)
	scripts := t.TempDir()
	script := file(t, scripts, "containerd-shim-kata-v2", "#!/bin/sh\n")

	for name, c := range map[string]struct {
		shim Shim
		read string // "" for none
		only string
		says string
	}{
		"passed by the engine":                          {shim: Shim{Config: yes, Program: shim}, read: yes, only: "true"},
		"passed by the engine for another handler":      {shim: Shim{Config: no, Program: shim}, read: no, only: "false"},
		"passed by the engine to a wrapper":             {shim: Shim{Config: no, Program: wrapper}, read: no, only: "false"},
		"passed by the engine to an unknown shim":       {shim: Shim{Config: yes}, read: yes, only: "true"},
		"environment of the engine":                     {shim: Shim{Environ: yes, Program: shim}, read: yes, only: "true"},
		"environment, link to the standard shim":        {shim: Shim{Environ: no, Program: linked}, read: no, only: "false"},
		"engine and environment agree":                  {shim: Shim{Config: yes, Environ: yes, Program: shim}, read: yes, only: "true"},
		"engine and environment differ":                 {shim: Shim{Config: yes, Environ: no, Program: shim}, says: "Go runtime uses the first"},
		"environment, wrapper":                          {shim: Shim{Environ: no, Program: wrapper}, says: "may use its own file"},
		"environment, program with another name":        {shim: Shim{Environ: no, Program: another}, says: "may use its own file"},
		"environment, script with the name of the shim": {shim: Shim{Environ: no, Program: script}, says: "may use its own file"},
		"environment, missing shim":                     {shim: Shim{Environ: no, Program: "/no/such/shim"}, says: "no such file"},
		"environment, unknown shim":                     {shim: Shim{Environ: no}, says: "its shim was not found"},
		"relative path":                                 {shim: Shim{Config: "x.toml", Program: shim}, says: "not an absolute path"},
		"missing file":                                  {shim: Shim{Config: dir + "/none", Program: shim}, says: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.shim.Facts(t.Context())
			if c.read != "" && (got["kata config"] != c.read || got["sandbox_cgroup_only"] != c.only || got["hypervisor"] == "") {
				t.Errorf("%v", got)
			}
			if c.read == "" && (len(got) != 1 || !strings.Contains(got["kata config"], c.says)) {
				t.Errorf("%v, not: %s", got, c.says)
			}
		})
	}
}

func TestCandidatesFollowTheShim(t *testing.T) {
	for shim, want := range map[string][]string{
		"/opt/kata/bin/containerd-shim-kata-v2":            {configPaths[0], configPaths[2]},
		"/opt/kata/runtime-rs/bin/containerd-shim-kata-v2": {configPaths[3], configPaths[4], configPaths[5]},
	} {
		if got, known := candidates(shim); !known || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", shim, got, known)
		}
	}
	if got, known := candidates("/usr/bin/containerd-shim-kata-v2"); known || !slices.Equal(got, configPaths) {
		t.Errorf("shim of an unknown runtime: %q, %v", got, known)
	}

	dir := t.TempDir()
	a, b := file(t, dir, "a", ""), file(t, dir, "b", "")
	for name, c := range map[string]struct {
		among []string
		known bool
		want  string
		says  string
	}{
		"known shim: first existing file":  {among: []string{dir + "/none", b, a}, known: true, want: b},
		"unknown shim: only existing file": {among: []string{a, dir + "/none"}, want: a},
		"unknown shim: two existing files": {among: []string{a, b}, says: "compiled in: " + a + ", " + b},
		"no existing file":                 {among: []string{dir + "/none"}, known: true, says: "looked for " + dir + "/none"},
	} {
		got, err := choose("shim", c.among, c.known)
		if got != c.want || (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestInvalidConfigurationsAreRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must.OK(t, unix.Mkfifo(fifo, 0o600))
	for path, says := range map[string]string{
		fifo:        "not a regular file",
		"/dev/zero": "not a regular file",
		dir:         "not a regular file",
		file(t, dir, "long.toml", strings.Repeat("# long\n", 1<<18)): "larger than 1048576 bytes",
	} {
		if got := Facts(path); len(got) != 1 || !strings.Contains(got["kata config"], says) {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestShimReportsItsVersionAndRuntime(t *testing.T) {
	for said, want := range map[string]string{
		"Kata Containers containerd shim (Golang): id: \"io.containerd.kata.v2\", version: 3.3.0, commit: 19eb45a27d5b666f8f012c13ba6b504cee4b97b1\n": "3.3.0 Golang",
		"Kata Containers containerd shim (Rust): id: io.containerd.kata.v2, version: 3.22.0, commit: 92758a17fe7fe7f9be04799f6d9eb7f58d7630c3\n":      "3.22.0 Rust",
		"Kata Containers containerd shim (Rust): id: io.containerd.kata.v2, version: \x1b[31m, commit: 1\n":                                           "",
		"another program 1.2\n": "",
	} {
		m := append(banner.FindStringSubmatch(said), "", "", "")
		check.Equal(t, said, strings.TrimSpace(m[2]+" "+m[1]), want)
	}
}
