package docker

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// daemons returns dockerd and its containerd, if they are on this machine.
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

// containerd returns the containerd that dockerd uses: its child, or the listener on the socket
// that it reports, was configured with, or uses by default. It returns 0 for none.
func (t *Target) containerd(dockerd int) int {
	for _, pid := range procs.Children(dockerd) {
		if name := procs.Name(pid); name == "containerd" || name == "docker-containerd" {
			return pid
		}
	}
	var address string
	if c := t.info.Containerd; c != nil { // since Docker 27
		address = c.Address
	}
	address = cmp.Or(address, configuredContainerd(dockerd), "/run/containerd/containerd.sock")
	for _, pid := range engine.Listeners(address) {
		return pid
	}
	return 0
}

// configuredContainerd returns the containerd in dockerd's flags or configuration file, "" for
// none.
func configuredContainerd(dockerd int) string {
	args := procs.ArgsOf(dockerd)
	if address := procs.Flag(args, "--containerd"); address != "" {
		return address
	}
	file := cmp.Or(procs.Flag(args, "--config-file"), "/etc/docker/daemon.json")
	// dockerd may have another mount namespace.
	var c struct {
		Containerd string `json:"containerd"`
	}
	_ = readJSON(filepath.Join(fmt.Sprintf("/proc/%d/root", dockerd), file), &c)
	return c.Containerd
}
