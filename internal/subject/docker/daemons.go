package docker

import (
	"fmt"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// daemons are those on this machine: dockerd, and the containerd that it uses.
func (t *Target) daemons() []int {
	if !t.local {
		return nil
	}
	found := engine.Listeners(t.host)
	if len(found) == 1 && !t.podman {
		found = append(found, t.containerd(found[0]))
	}
	return found
}

// containerd is the one that dockerd uses: its child, or the one that it says
// or was told to use, or the one at the usual place. 0 for none that can be seen.
func (t *Target) containerd(dockerd int) int {
	for _, pid := range procs.Children(dockerd) {
		if name := procs.Name(pid); name == "containerd" || name == "docker-containerd" {
			return pid
		}
	}
	address := "/run/containerd/containerd.sock"
	if c := t.info.Containerd; c != nil && c.Address != "" { // since Docker 27
		address = c.Address
	} else if told := told(dockerd); told != "" {
		address = told
	}
	for _, pid := range engine.Listeners(address) {
		return pid
	}
	return 0
}

// told is the containerd that dockerd was given by a flag or in its
// configuration file, "" for none.
func told(dockerd int) string {
	args := procs.ArgsOf(dockerd)
	if address := procs.Flag(args, "--containerd"); address != "" {
		return address
	}
	file := procs.Flag(args, "--config-file")
	if file == "" {
		file = "/etc/docker/daemon.json"
	}
	// It may see other mounts than tare.
	var c struct {
		Containerd string `json:"containerd"`
	}
	_ = readJSON(filepath.Join(fmt.Sprintf("/proc/%d/root", dockerd), file), &c)
	return c.Containerd
}
