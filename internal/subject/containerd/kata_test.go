package containerd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestKataIsToldInItsEnginesSurroundings(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	must.OK(t, os.WriteFile(config, []byte("[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only=true\n"), 0o600))
	own := filepath.Join(dir, "sock") // the test itself is a daemon in tare's mounts
	l, err := net.Listen("unix", own)
	must.OK(t, err)
	defer func() { _ = l.Close() }()
	elsewhere := engines.Containerd(t, engines.V1).Address // has mounts of its own

	for _, c := range []struct{ name, socket, config, only, says string }{
		{"a file in the same mounts is read", own, config, "true", config},
		{"without one, a shim that is not there tells none", own, "", "", "not told by the engine; its shim was not found"},
		{"a file in other mounts is not read", elsewhere, config, "", config + ", not read; the engine's mounts are not tare's"},
		{"nor is the default there", elsewhere, "", "", "not told by the engine; the engine's mounts are not tare's"},
		{"nor that of nobody", filepath.Join(dir, "none"), config, "", config + ", not read; nor can the engine's surroundings be known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := KataFacts(t.Context(), c.socket, "containerd-shim-kata-nonesuch-v2", c.config)
			if got["sandbox_cgroup_only"] != c.only || !strings.HasPrefix(got["kata config"], c.says) {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestAVariableIsFoundByItsWholeName(t *testing.T) {
	const environ = "A=1\x00XKATA_CONF_FILE=no\x00KATA_CONF_FILE=/a=b\x00EMPTY=\x00"
	for name, want := range map[string]string{"KATA_CONF_FILE": "/a=b", "A": "1", "EMPTY": ""} {
		if got, ok := variable(environ, name); !ok || got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if got, ok := variable(environ, "CONF_FILE"); ok {
		t.Errorf("%q", got)
	}
}
