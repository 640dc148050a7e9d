package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Processes implements subject.HelperProcesses.
func (s *session) Processes(context.Context) []subject.Process {
	if !s.local {
		return nil
	}
	var out []subject.Process
	if pid, err := procs.Listener(engine.Socket(s.host)); err == nil {
		out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
		if pid := s.containerd(pid); pid != 0 {
			out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
		}
	}
	var ids []string
	for _, h := range s.holds {
		ids = append(ids, h.id)
	}
	return append(out, kata.Beside(ids)...)
}

// containerd is the one that dockerd uses: its child, or the one that it says
// or was told to use, or the one at the usual place. 0 for none that can be seen.
func (s *session) containerd(dockerd int) int {
	for _, pid := range procs.Children(dockerd) {
		if name := procs.Name(pid); name == "containerd" || name == "docker-containerd" {
			return pid
		}
	}
	address := "/run/containerd/containerd.sock"
	if c := s.info.Containerd; c != nil && c.Address != "" { // since Docker 27
		address = c.Address
	} else if told := told(dockerd); told != "" {
		address = told
	}
	pid, err := procs.Listener(engine.Socket(address))
	if err != nil {
		return 0
	}
	return pid
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
	b, err := readSmall(filepath.Join(fmt.Sprintf("/proc/%d/root", dockerd), file))
	var c struct {
		Containerd string `json:"containerd"`
	}
	if err != nil || json.Unmarshal(b, &c) != nil {
		return ""
	}
	return c.Containerd
}
