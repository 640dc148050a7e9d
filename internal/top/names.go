package top

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Limits of a file with a sandbox's name, and of the name.
const (
	largestBundle = 1 << 20 // bytes
	longestName   = 256
)

// nameSandboxes replaces ids by the names of the engines. A name that was found is kept.
func (c *collector) nameSandboxes() {
	names := map[string]string{}
	for _, b := range c.boxes {
		name := c.names[b.key]
		if name == "" {
			name = c.engineName(b)
		}
		if name != "" {
			names[b.key], b.Name = name, name[:min(len(name), longestName)]
		}
	}
	c.names = names
}

// kubeletName matches the name that a kubelet gives to a container of CRI-O:
// k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT.
var kubeletName = regexp.MustCompile(`^k8s_[^_]+_([^_]+)_([^_]+)_[^_]+_\d+$`)

// engineName returns the engine's name of a sandbox: NAMESPACE/POD, or a container's name, from
// the arguments of conmon or from the bundle, in which a shim runs. It returns "" if unknown.
// A process in a pid namespace of its own does not belong to an engine: a container can start
// a program with the name of a shim.
func (c *collector) engineName(b *box) string {
	for _, m := range b.members {
		if len(m.NSpid) > 1 {
			continue
		}
		switch m.Role {
		case record.RoleMonitor:
			at := slices.Index(m.Args, "-n")
			if at < 0 || at+1 >= len(m.Args) {
				continue
			}
			if pod := kubeletName.FindStringSubmatch(m.Args[at+1]); pod != nil {
				return pod[2] + "/" + pod[1]
			}
			if b.Pod == "" { // else it is the name of one container of the pod
				return m.Args[at+1]
			}
		case record.RoleShim:
			if name := c.bundleName(m.Pid); name != "" {
				return name
			}
		}
	}
	return ""
}

// bundleName returns the name of the container or pod in a shim's working directory.
func (c *collector) bundleName(pid int) string {
	var bundle struct {
		Annotations map[string]string
		Mounts      []struct{ Destination, Source string }
	}
	c.readJSON(fmt.Sprintf("/proc/%d/cwd/config.json", pid), &bundle)
	if pod := bundle.Annotations["io.kubernetes.cri.sandbox-name"]; pod != "" {
		return bundle.Annotations["io.kubernetes.cri.sandbox-namespace"] + "/" + pod
	}
	if name := bundle.Annotations["nerdctl/name"]; name != "" {
		return name
	}
	for _, m := range bundle.Mounts { // Docker keeps the name next to the container's hostname
		if m.Destination == "/etc/hostname" && filepath.IsAbs(m.Source) {
			var docker struct{ Name string }
			c.readJSON(filepath.Join(filepath.Dir(m.Source), "config.v2.json"), &docker)
			return strings.TrimPrefix(docker.Name, "/")
		}
	}
	return ""
}

// readJSON reads a foreign file. It leaves the value unset on errors, because a sandbox can do
// without a name.
func (c *collector) readJSON(path string, into any) {
	f, err := machine.OpenPlain(string(c.cfg.Root)+path, unix.O_NOFOLLOW)
	if err != nil {
		return
	}
	defer f.Close()
	_ = json.NewDecoder(io.LimitReader(f, largestBundle)).Decode(into)
}
