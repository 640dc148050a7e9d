package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// NewCommand returns the same target as New, driven by crictl: each operation is a process that
// connects, calls and prints. Preparation and checks use the API and are not timed.
//
// The command in e is used as crictl if it is called crictl. Otherwise it is the engine's own
// command line, which loads images.
func NewCommand(ctx context.Context, name, engineName, handler string, e subject.Engine) (subject.Target, error) {
	crictl := subject.Engine{Env: e.Env}
	if strings.HasPrefix(filepath.Base(e.Command), "crictl") {
		crictl.Command, crictl.Args = e.Command, e.Args
		e.Command, e.Args = "", nil
	}
	made, err := New(ctx, name, engineName, handler, e)
	if err != nil {
		return nil, err
	}
	t := made.(*Target)
	p, err := cli.Find(crictl, "crictl")
	if err != nil {
		return nil, engine.Unavailable(name, "install crictl of cri-tools, or give its path: engines: {"+criName(engineName)+"+cli: {command: /PATH/crictl}}; or use the API without +cli: "+strings.Replace(name, "+cli", "", 1), "%v", err)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	banner, err := p.Run(bounded, "--version")
	if err != nil {
		return nil, engine.Unavailable(name, "run it by hand", "%v", err)
	}
	line, _, _ := strings.Cut(string(banner), "\n")
	version, is := strings.CutPrefix(line, "crictl version ")
	if !is || version == "" {
		return nil, engine.Unavailable(name, "give the path of crictl", "%s is not crictl: %s --version printed %q", p.Path, p.Path, line)
	}
	p.Args = append([]string{"--runtime-endpoint", "unix://" + t.socket, "--image-endpoint", "unix://" + t.socket}, p.Args...)
	t.command, t.client = &p, version
	return t, nil
}

func criName(engineName string) string { return "cri+" + engineName }

// verb returns an operation as arguments of crictl. It pulls nothing; stop has the same
// timeout as with the API.
func (t *Target) verb(op subject.Op, h *held, podFile, containerFile string) []string {
	var handler []string
	if name := t.requested(); name != "" {
		handler = []string{"--runtime", name}
	}
	switch op {
	case subject.RunPod:
		return append(append([]string{"runp"}, handler...), podFile)
	case subject.Create:
		return []string{"create", "--no-pull", h.pod, containerFile, podFile}
	case subject.Run:
		return append(append([]string{"run", "--no-pull"}, handler...), containerFile, podFile)
	case subject.Stop:
		return []string{"stop", "--timeout", strconv.Itoa(stopTimeout), h.container}
	case subject.Start, subject.Remove:
		return []string{string(op), h.container}
	}
	return []string{string(op), h.pod} // stopp, rmp
}

// shown returns the command line of an operation for display.
func (t *Target) shown(op subject.Op) []string {
	return t.command.Line(append([]string{"--timeout", "TIME"}, t.verb(op, &held{pod: "POD", container: "ID"}, "pod.json", "container.json")...)...)
}

// line returns the command line of an operation on a lane. It also writes the files that crictl
// reads, which hold the same messages as the API calls, as JSON.
func (d *driver) line(op subject.Op, name string, place engine.Place) ([]string, error) {
	h, err := d.podFor(op, name)
	if err != nil {
		return nil, err
	}
	pod, container := d.files(name)
	if op == subject.RunPod || op == subject.Run {
		h.abandoned = true // until the engine lists it
		err = writeJSON(pod, h.config)
	}
	if err == nil && (op == subject.Create || op == subject.Run) {
		fresh := *h
		fresh.container, fresh.abandoned = "", true
		d.held[name] = &fresh
		os.Remove(d.ground.Log(name)) // the previous container's
		fresh.request = d.containerConfig(name, place)
		err = writeJSON(container, fresh.request)
	}
	if err != nil {
		return nil, err
	}
	return d.command.Line(append([]string{"--timeout", d.env.Timeout.String()}, d.verb(op, h, pod, container)...)...), nil
}

// files returns the files that crictl reads for a lane's pod and container.
func (d *driver) files(name string) (pod, container string) {
	stem := filepath.Join(d.env.Dir, name)
	return stem + "-pod.json", stem + "-container.json"
}

func writeJSON(file string, message any) error {
	text, err := json.Marshal(message)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write a file for crictl: %w", err)
	}
	return nil
}

// adopt finds the pods and containers that crictl made in the engine's lists and stores their
// ids. They have the run's label and the name of a lane.
func (d *driver) adopt(pods []*api.PodSandbox, containers []*api.Container) {
	if d.command == nil {
		return
	}
	for _, p := range pods {
		if h := d.held[p.GetMetadata().GetName()]; h != nil && h.pod == "" {
			h.pod, h.abandoned = p.Id, h.request != nil
		}
	}
	for _, c := range containers {
		if h := d.held[c.GetMetadata().GetName()]; h != nil && h.container == "" && h.pod == c.PodSandboxId {
			h.container, h.abandoned = c.Id, false
		}
	}
}
