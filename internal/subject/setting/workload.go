package setting

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
)

// Workload is a program of the user's own in the probe's place. The zero value is none.
type Workload struct {
	Image       string     `json:"image,omitempty"`        // an archive of one, or the name of one that an engine has; "" for tare's own
	Pull        bool       `json:"pull,omitempty"`         // the image is pulled
	Command     []string   `json:"command,omitempty"`      // in place of the image's own; nil for that
	HostCommand []string   `json:"host_command,omitempty"` // what runs as a plain process on the host; nil where nothing can
	Env         []Variable `json:"env,omitempty"`          // over those of the image
	Mounts      []Mount    `json:"mounts,omitempty"`
	User        string     `json:"user,omitempty"` // USER[:GROUP], by names of the image or numbers; "" for the image's own
}

// Is tells whether there is one.
func (w *Workload) Is() bool {
	return w.Image != "" || len(w.Command) > 0
}

// OnHost is what runs as a plain process on the host: what was said, or the same command
// where it is of tare's own image, whose one program the host has, too; nil where nothing
// can.
func (w *Workload) OnHost() []string {
	if w.HostCommand == nil && w.Image == "" {
		return w.Command
	}
	return w.HostCommand
}

// Variable is NAME=VALUE, or NAME alone for one that has the value that tare's own
// environment has. Whatever is written of one, a record above all, is its name: a value may
// be a secret.
type Variable string

// Name is the variable's name.
func (v Variable) Name() string {
	name, _, _ := strings.Cut(string(v), "=")
	return name
}

// String is the name, also where a variable is printed by chance.
func (v Variable) String() string { return v.Name() }

// MarshalJSON writes the name.
func (v Variable) MarshalJSON() ([]byte, error) { return json.Marshal(v.Name()) }

var variableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
})

// Check is what is wrong with a variable.
func (v Variable) Check() error {
	if !variableName().MatchString(v.Name()) {
		return fmt.Errorf("%.80q is no name of a variable: write NAME=VALUE, or NAME for the value that it has here", v.Name())
	}
	if strings.ContainsRune(string(v), 0) {
		return fmt.Errorf("the value of %s has a zero byte in it", v.Name())
	}
	return nil
}

// Environment are the variables as NAME=VALUE; lookup knows tare's own environment.
func (w *Workload) Environment(lookup func(string) (string, bool)) ([]string, error) {
	var out []string
	for _, v := range w.Env {
		if strings.Contains(string(v), "=") {
			out = append(out, string(v))
			continue
		}
		value, there := lookup(v.Name())
		if !there {
			return nil, fmt.Errorf("--env %s: there is no variable of that name here: set it, or write %s=VALUE", v.Name(), v.Name())
		}
		out = append(out, v.Name()+"="+value)
	}
	return out, nil
}

// Mount is a folder or file of this machine in every container, written
// SOURCE:DESTINATION or SOURCE:DESTINATION:ro.
type Mount string

// Parts are the paths, and whether the workload can write to it.
func (m Mount) Parts() (source, destination string, readOnly bool) {
	rest, readOnly := strings.CutSuffix(string(m), ":ro")
	source, destination, _ = strings.Cut(rest, ":")
	return source, destination, readOnly
}

// Probe is where tare's own program is in a container: probe.Name, which options need
// without the programs that package probe holds.
const Probe = "/probe"

// Check is what is wrong with a mount. Engines cut mounts at colons, and some at commas.
func (m Mount) Check() error {
	source, destination, _ := m.Parts()
	for _, p := range []string{source, destination} {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsAny(p, ":,\x00\n") {
			return fmt.Errorf("%.200q is no mount: write SOURCE:DESTINATION or SOURCE:DESTINATION:ro, both absolute, without a comma, such as /srv/data:/data:ro", string(m))
		}
	}
	if destination == "/" || destination == Probe {
		return fmt.Errorf("%.200q: %s is tare's own in a container; mount it elsewhere", string(m), destination)
	}
	return nil
}
