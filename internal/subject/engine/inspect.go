package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
)

// inspected is the part of Docker's inspect format that is used. Podman and isula print the
// same format, each without some fields.
type inspected struct {
	ID         string `json:"Id"`
	Name       string
	LogPath    string // isula, and podman before 4.0
	OCIRuntime string // podman; its HostConfig.Runtime is always "oci"
	State      struct {
		Status     string
		Running    *bool
		Pid        int
		ConmonPid  int    // podman's monitor
		CgroupPath string // podman since 4.0, while the process runs
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
		LogConfig struct{ Type, Path string } // podman
	}
}

// Inspected parses the JSON list of containers that a command printed. Impossible values are
// an error.
func Inspected(out []byte) ([]State, error) {
	var all []inspected
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("inspect printed no JSON list of containers: %w", err)
	}
	states := make([]State, len(all))
	for i := range all {
		s := all[i].state()
		if s.Name == "" || s.ID == "" || s.Said == "" {
			return nil, errors.New("inspect printed a container without name, id or status")
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
		Why: c.State.Error, OOMKilled: c.State.OOMKilled, Address: c.NetworkSettings.IPAddress,
	}
	for _, n := range c.NetworkSettings.Networks {
		s.Address = cmp.Or(s.Address, n.IPAddress)
	}
	running := s.Said == "running"
	contradicted := c.State.Running != nil && *c.State.Running != running
	switch {
	case s.Said == "created" || s.Said == "configured" || s.Said == "inited": // inited is isula's
		s.Status = Created
	case running && !contradicted:
		s.Status = Running
	case (s.Said == "exited" || s.Said == "stopped") && !contradicted: // podman says stopped until its clean-up is done
		s.Status = Exited
	}
	switch c.HostConfig.LogConfig.Type {
	case "", "k8s-file", "json-file": // podman's other log drivers, such as journald, have no file
		s.Log = cmp.Or(c.HostConfig.LogConfig.Path, c.LogPath)
	}
	return s
}
