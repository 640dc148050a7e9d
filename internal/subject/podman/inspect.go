package podman

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// inspected is what matters of a container in `podman inspect`.
type inspected struct {
	ID         string `json:"Id"`
	Name       string `json:"Name"`
	OCIRuntime string `json:"OCIRuntime"`
	LogPath    string `json:"LogPath"` // before 4.0
	State      struct {
		Status    string `json:"Status"`
		Pid       int    `json:"Pid"`
		ConmonPid int    `json:"ConmonPid"`
		ExitCode  int    `json:"ExitCode"`
		// CgroupPath is read from the process while it runs, since 4.0.
		CgroupPath string `json:"CgroupPath"`
	} `json:"State"`
	HostConfig struct {
		LogConfig struct {
			Type string `json:"Type"`
			Path string `json:"Path"`
		} `json:"LogConfig"`
	} `json:"HostConfig"`
}

func parseInspect(out []byte) ([]engine.State, error) {
	var all []inspected
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("podman inspect printed no JSON list of containers: %w", err)
	}
	states := make([]engine.State, len(all))
	for i := range all {
		var err error
		if states[i], err = all[i].state(); err != nil {
			return nil, fmt.Errorf("podman inspect: %w", err)
		}
	}
	return states, nil
}

// maxPid is the kernel's PID_MAX_LIMIT.
const maxPid = 1 << 22

func (c *inspected) state() (engine.State, error) {
	s := engine.State{
		Name: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Said: c.State.Status, Pid: c.State.Pid, Exit: c.State.ExitCode,
		Runtime: c.OCIRuntime, Monitor: c.State.ConmonPid, Group: c.State.CgroupPath,
	}
	if s.Name == "" || s.ID == "" || s.Said == "" {
		return s, fmt.Errorf("a container without name, id or status")
	}
	if s.Pid < 0 || s.Pid > maxPid || s.Monitor < 0 || s.Monitor > maxPid {
		return s, fmt.Errorf("container %s has the impossible pid %d, monitor %d", s.Name, s.Pid, s.Monitor)
	}
	switch s.Said {
	case "created", "configured":
		s.Status = engine.Created
	case "running":
		s.Status = engine.Running
	case "exited", "stopped": // stopped is exited before the clean-up
		s.Status = engine.Exited
	default:
		s.Status = engine.Other
	}
	if l := c.HostConfig.LogConfig; l.Type == "k8s-file" || l.Type == "json-file" { // the second is podman's other word for the first
		s.Log = l.Path
		if s.Log == "" {
			s.Log = c.LogPath
		}
	}
	return s, nil
}
