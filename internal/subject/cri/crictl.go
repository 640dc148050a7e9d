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

// NewCommand returns the same as New, driven by crictl, as people drive it by hand:
// each operation is a process of its own, which connects, asks and prints. Preparation
// and truth go through the API and are not timed.
//
// The settings' command is crictl's where it is called so, else that of the engine's
// own, by which images are loaded.
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
		return nil, engine.Unavailable(name, "install crictl of cri-tools, or name it: engines: {"+criName(engineName)+"+cli: {command: /PATH/crictl}}; without +cli, as "+strings.Replace(name, "+cli", "", 1)+", the same endpoint is called by its API", "%v", err)
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	banner, err := p.Run(asking, "--version")
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

// verb is an operation as arguments of crictl. Nothing is pulled; stop waits as long
// as the API's does.
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

// shown is the command line of an operation for people.
func (t *Target) shown(op subject.Op) []string {
	return t.command.Line(append([]string{"--timeout", "TIME"}, t.verb(op, &held{pod: "POD", container: "ID"}, "pod.json", "container.json")...)...)
}

// line is the command line of an operation on a lane. What crictl reads is written
// before: it takes the same messages as the API, as JSON.
func (d *driver) line(op subject.Op, name string, place engine.Place) ([]string, error) {
	h, err := d.holding(op, name)
	if err != nil {
		return nil, err
	}
	pod, container := d.files(name)
	if op == subject.RunPod || op == subject.Run {
		h.unsure = true // until it is seen
		err = writeJSON(pod, h.config)
	}
	if err == nil && (op == subject.Create || op == subject.Run) {
		fresh := *h
		fresh.container, fresh.unsure = "", true
		d.held[name] = &fresh
		os.Remove(d.ground.Log(name)) // of the container before
		fresh.making = d.containerConfig(name, place)
		err = writeJSON(container, fresh.making)
	}
	if err != nil {
		return nil, err
	}
	return d.command.Line(append([]string{"--timeout", d.env.Timeout.String()}, d.verb(op, h, pod, container)...)...), nil
}

// files are those that crictl reads for a lane's pod and container.
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
		return fmt.Errorf("write what crictl is to read: %w", err)
	}
	return nil
}

// adopt takes note of the ids that crictl printed to nobody: a pod and a container
// that bear the run's label and a lane's name are what its command made.
func (d *driver) adopt(pods []*api.PodSandbox, containers []*api.Container) {
	if d.command == nil {
		return
	}
	for _, p := range pods {
		if h := d.held[p.GetMetadata().GetName()]; h != nil && h.pod == "" {
			h.pod, h.unsure = p.Id, h.making != nil
		}
	}
	for _, c := range containers {
		if h := d.held[c.GetMetadata().GetName()]; h != nil && h.container == "" && h.pod == c.PodSandboxId {
			h.container, h.unsure = c.Id, false
		}
	}
}
