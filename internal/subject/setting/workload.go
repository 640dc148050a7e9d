package setting

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
)

// Workload is a program of the user's own instead of the probe. The zero value is the probe.
type Workload struct {
	Image       string     `json:"image,omitempty"`        // an archive, or an engine's image; "" for tare's
	Pull        bool       `json:"pull,omitempty"`         // pull the image
	Command     []string   `json:"command,omitempty"`      // nil for the image's own
	HostCommand []string   `json:"host_command,omitempty"` // for the target host; nil for none
	Env         []Variable `json:"env,omitempty"`          // in addition to the image's
	Mounts      []Mount    `json:"mounts,omitempty"`
	User        string     `json:"user,omitempty"` // USER[:GROUP], names in the image or numbers; "" for the image's
}

// Is reports whether the user gave a program.
func (w *Workload) Is() bool {
	return w.Image != "" || len(w.Command) > 0
}

// OnHost returns the command for the target host, nil for none. It is HostCommand, or else Command
// if the image is tare's, since the host has its program, too.
func (w *Workload) OnHost() []string {
	if w.HostCommand == nil && w.Image == "" {
		return w.Command
	}
	return w.HostCommand
}

// Variable is NAME=VALUE, or NAME for a variable of tare's environment. Only its name is
// printed or recorded: a value may be a secret.
type Variable string

// Name returns the variable's name.
func (v Variable) Name() string {
	name, _, _ := strings.Cut(string(v), "=")
	return name
}

// String returns the name, so that no value is printed by accident.
func (v Variable) String() string { return v.Name() }

// MarshalJSON encodes the name.
func (v Variable) MarshalJSON() ([]byte, error) { return json.Marshal(v.Name()) }

var variableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
})

// Check returns the error of an invalid variable.
func (v Variable) Check() error {
	if !variableName().MatchString(v.Name()) {
		return fmt.Errorf("invalid variable name %.80q: write NAME=VALUE, or NAME to take its value from the environment", v.Name())
	}
	if strings.ContainsRune(string(v), 0) {
		return fmt.Errorf("the value of %s contains a zero byte", v.Name())
	}
	return nil
}

// Environment returns the variables as NAME=VALUE. lookup returns those of tare's environment.
func (w *Workload) Environment(lookup func(string) (string, bool)) ([]string, error) {
	var out []string
	for _, v := range w.Env {
		if strings.Contains(string(v), "=") {
			out = append(out, string(v))
			continue
		}
		value, there := lookup(v.Name())
		if !there {
			return nil, fmt.Errorf("--env %s: not set in the environment: set it, or write %s=VALUE", v.Name(), v.Name())
		}
		out = append(out, v.Name()+"="+value)
	}
	return out, nil
}

// Mount is a folder or file of this machine in every container, as SOURCE:DESTINATION or
// SOURCE:DESTINATION:ro.
type Mount string

// Parts returns the paths, and whether the mount is read-only.
func (m Mount) Parts() (source, destination string, readOnly bool) {
	rest, readOnly := strings.CutSuffix(string(m), ":ro")
	source, destination, _ = strings.Cut(rest, ":")
	return source, destination, readOnly
}

// Probe is the path of tare's program in a container: probe.Name, without an import of the
// embedded programs.
const Probe = "/probe"

// Check returns the error of an invalid mount. Engines split mounts at colons, and some at commas.
func (m Mount) Check() error {
	source, destination, _ := m.Parts()
	for _, p := range []string{source, destination} {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsAny(p, ":,\x00\n") {
			return fmt.Errorf("invalid mount %.200q: write SOURCE:DESTINATION or SOURCE:DESTINATION:ro with absolute paths without commas, such as /srv/data:/data:ro", string(m))
		}
	}
	if destination == "/" || destination == Probe {
		return fmt.Errorf("mount %.200q: %s is reserved in containers: choose another destination", string(m), destination)
	}
	return nil
}
