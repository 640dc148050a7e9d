package isula

import (
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// versions reads what `isula version` prints: sections, and in each a line
// "  Version:\t2.1.5".
func versions(text string) (client, server string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) != "Version" {
			continue
		}
		switch section {
		case "Client:":
			client = strings.TrimSpace(value)
		case "Server:":
			server = strings.TrimSpace(value)
		}
	}
	return client, server
}

// facts reads what `isula info` prints: "Storage Driver: overlay".
func facts(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// inspected is what matters of a container in `isula inspect`.
type inspected struct {
	ID      string `json:"Id"`
	Name    string `json:"Name"`
	LogPath string `json:"LogPath"`
	State   struct {
		Status   string `json:"Status"`
		Running  bool   `json:"Running"`
		Pid      int    `json:"Pid"`
		ExitCode int    `json:"ExitCode"`
	} `json:"State"`
	HostConfig struct {
		Runtime string `json:"Runtime"`
	} `json:"HostConfig"`
}

func parseInspect(out []byte) ([]engine.State, error) {
	return engine.States("isula inspect", out, (*inspected).state)
}

func (c *inspected) state() engine.State {
	s := engine.State{
		Name: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Said: c.State.Status, Pid: c.State.Pid, Exit: c.State.ExitCode,
		Runtime: c.HostConfig.Runtime, Log: c.LogPath,
	}
	switch {
	case s.Said == "running" && c.State.Running:
		s.Status = engine.Running
	case s.Said == "inited" || s.Said == "created": // ps and its filters say created
		s.Status = engine.Created
	case s.Said == "exited" && !c.State.Running:
		s.Status = engine.Exited
	default:
		s.Status = engine.Other
	}
	return s
}

// ownImages are the workload's images in what `isula images` prints: a table
// whose columns are padded with spaces, the repository and the tag first.
func ownImages(table []byte) ([]string, error) {
	var refs []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && engine.OwnImage(fields[0]+":"+fields[1]) {
			refs = append(refs, fields[0]+":"+fields[1])
		}
	}
	return refs, nil
}
