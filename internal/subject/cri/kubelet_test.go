package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAKubeletOfAnotherEngineIsNotThisEngines(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"own.sock": "", "other.sock": "",
		"own.yaml":   "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///own.sock\n",
		"other.yaml": "containerRuntimeEndpoint: 'unix:///other.sock'\nunknown: {a: [1]}\n",
		"none.yaml":  "kind: KubeletConfiguration\n",
		"not.yaml":   "\x00{",
	} {
		must.OK(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	must.OK(t, os.Symlink("own.sock", filepath.Join(root, "link.sock")))
	for args, want := range map[string]bool{
		"": true,
		"--container-runtime-endpoint=unix:///own.sock":                      true,
		"--container-runtime-endpoint unix:///own.sock":                      true,
		"--container-runtime-endpoint=unix:///link.sock":                     true,
		"--container-runtime-endpoint=unix:///other.sock":                    false,
		"--container-runtime-endpoint=unix:///gone.sock":                     false,
		"--container-runtime-endpoint=unix:///other.sock --config=/own.yaml": false, // the flag comes first
		"--config=/own.yaml":                              true,
		"--config=/other.yaml":                            false,
		"--config /other.yaml":                            false,
		"--config=/none.yaml":                             true, // which has its default
		"--config=/not.yaml":                              true,
		"--config=/gone.yaml":                             true,
		"--config=other.yaml":                             true, // of a folder that is not known
		"--container-runtime-endpoint=npipe:////./pipe/x": true,
		"--container-runtime-endpoint":                    true,
		"--container-runtime-endpoint=unix:///own.sock --container-runtime-endpoint=unix:///other.sock": false,
	} {
		if got := uses(append([]string{"kubelet"}, strings.Fields(args)...), root, filepath.Join(root, "own.sock")); got != want {
			t.Errorf("kubelet %s: %v", args, got)
		}
	}
}
