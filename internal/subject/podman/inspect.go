package podman

import (
	"cmp"
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
	NetworkSettings struct {
		IPAddress string `json:"IPAddress"`
		Networks  map[string]struct {
			IPAddress string `json:"IPAddress"`
		} `json:"Networks"`
	} `json:"NetworkSettings"`
	HostConfig struct {
		LogConfig struct {
			Type string `json:"Type"`
			Path string `json:"Path"`
		} `json:"LogConfig"`
	} `json:"HostConfig"`
}

func parseInspect(out []byte) ([]engine.State, error) {
	return engine.States("podman inspect", out, (*inspected).state)
}

func (c *inspected) state() engine.State {
	s := engine.State{
		Name: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Said: c.State.Status, Pid: c.State.Pid, Exit: c.State.ExitCode,
		Runtime: c.OCIRuntime, Monitor: c.State.ConmonPid, Group: c.State.CgroupPath,
	}
	s.Address = c.NetworkSettings.IPAddress
	for _, n := range c.NetworkSettings.Networks {
		s.Address = cmp.Or(s.Address, n.IPAddress)
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
	return s
}
