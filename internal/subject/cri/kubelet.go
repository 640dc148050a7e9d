package cri

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// kubelet reports whether a kubelet on this machine uses the engine behind a socket, or may use
// it.
var kubelet = func(socket string) bool { return len(kubelets(socket)) > 0 }

func kubelets(socket string) []int {
	return slices.DeleteFunc(procs.All(), func(pid int) bool {
		s, err := procs.StatOf(pid)
		if err != nil || s.Comm != "kubelet" {
			return true
		}
		args := procs.ArgsOf(pid) // none after its end
		return len(args) == 0 || !uses(args, fmt.Sprintf("/proc/%d/root", pid), socket)
	})
}

// uses reports whether a kubelet with these arguments, whose files are below root, uses the
// engine behind a socket.
func uses(args []string, root, socket string) bool {
	its, ok := strings.CutPrefix(cmp.Or(procs.Flag(args, "--container-runtime-endpoint"), configured(root, procs.Flag(args, "--config"))), "unix://")
	if !ok || !filepath.IsAbs(its) {
		return true
	}
	a, err1 := os.Stat(root + its)
	b, err2 := os.Stat(socket)
	if err1 != nil || err2 != nil {
		return filepath.Clean(its) == filepath.Clean(socket)
	}
	return os.SameFile(a, b)
}

// configured returns the endpoint in a kubelet's configuration file (KubeletConfiguration of
// kubelet.config.k8s.io/v1beta1), "" if it has none.
func configured(root, path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	text, err := machine.Root(root).Read(path, 1<<20)
	var config struct {
		Endpoint string `yaml:"containerRuntimeEndpoint"`
	}
	if err != nil || yaml.Unmarshal(text, &config) != nil {
		return ""
	}
	return config.Endpoint
}
