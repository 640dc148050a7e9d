package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
)

// inspected is what matters of a container where it is inspected in Docker's form. Podman
// and isula print that form, and each leaves out what it does not have.
type inspected struct {
	ID         string `json:"Id"`
	Name       string
	LogPath    string // isula's, and podman's before 4.0
	OCIRuntime string // podman's, whose HostConfig has "oci" for all
	State      struct {
		Status     string
		Running    *bool
		Pid        int
		ConmonPid  int    // podman's monitor
		CgroupPath string // podman reads it from the process while it runs, since 4.0
		ExitCode   int
		OOMKilled  bool
		Error      string
	}
	NetworkSettings struct {
		IPAddress string
		Networks  map[string]struct{ IPAddress string }
	}
	HostConfig struct {
		Runtime   string
		LogConfig struct{ Type, Path string } // podman's
	}
}

// Inspected reads the JSON list of containers that a command printed. It is foreign text:
// what no container can be is an error.
func Inspected(out []byte) ([]State, error) {
	var all []inspected
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("inspect printed no JSON list of containers: %w", err)
	}
	states := make([]State, len(all))
	for i := range all {
		s := all[i].state()
		if s.Name == "" || s.ID == "" || s.Said == "" {
			return nil, errors.New("inspect tells of a container without name, id or status")
		}
		if min(s.Pid, s.Monitor) < 0 || max(s.Pid, s.Monitor) > procs.MaxPid {
			return nil, fmt.Errorf("inspect: container %s has the impossible pid %d, monitor %d", s.Name, s.Pid, s.Monitor)
		}
		states[i] = s
	}
	return states, nil
}

func (c *inspected) state() State {
	s := State{
		Name: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Status: Other, Said: c.State.Status, Pid: c.State.Pid, Exit: c.State.ExitCode,
		Runtime: cmp.Or(c.OCIRuntime, c.HostConfig.Runtime), Monitor: c.State.ConmonPid, Group: c.State.CgroupPath,
		Why: c.State.Error, Starved: c.State.OOMKilled, Address: c.NetworkSettings.IPAddress,
	}
	for _, n := range c.NetworkSettings.Networks {
		s.Address = cmp.Or(s.Address, n.IPAddress)
	}
	running := s.Said == "running"
	contradicted := c.State.Running != nil && *c.State.Running != running
	switch {
	case s.Said == "created" || s.Said == "configured" || s.Said == "inited": // the last is isula's, whose ps says created
		s.Status = Created
	case running && !contradicted:
		s.Status = Running
	case (s.Said == "exited" || s.Said == "stopped") && !contradicted: // podman's stopped is exited before the clean-up
		s.Status = Exited
	}
	switch c.HostConfig.LogConfig.Type {
	case "", "k8s-file", "json-file": // what podman keeps elsewhere, in the journal for instance, is in no file
		s.Log = cmp.Or(c.HostConfig.LogConfig.Path, c.LogPath)
	}
	return s
}
