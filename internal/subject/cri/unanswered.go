package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// isuladDeaf is how long isulad goes on with a RunPodSandbox whose client has gone before its
// pod's container is listed: seen up to 5 s (2.1.6).
const isuladDeaf = 8 * time.Second

// Deaf implements engine.Deaf.
func (d *driver) CallsHiddenFor() time.Duration { return d.facts.deaf }

// unanswered are what an engine has made, or makes, for calls that were given up, and that CRI
// does not list: ids by names of lanes. It is asked for where a call was given up.
func (d *driver) unanswered(ctx context.Context) (map[string][]string, error) {
	doubt := d.held == nil || d.command != nil
	for _, h := range d.held {
		doubt = doubt || h.unsure
	}
	switch {
	case !doubt:
		return nil, nil
	case d.engineName == isuladEngine:
		return d.ofIsula(ctx)
	case d.engineName != containerdEngine:
		return nil, nil
	}
	c, err := containerd.Connect(ctx, d.socket, criNamespace)
	if err != nil {
		return nil, nil // a socket that serves CRI alone
	}
	defer func() { _ = c.Close() }()
	return containerd.PodsOf(ctx, c, d.env.RunID)
}

// ofIsula are those of isulad's own list, in which a container of CRI is called
// k8s_NAME_POD_NAMESPACE_UID_ATTEMPT, that of the pod itself k8s_POD_….
func (d *driver) ofIsula(ctx context.Context) (map[string][]string, error) {
	list, err := d.isula(ctx, "ps", "-a", "--format", "{{.Names}}")
	if err != nil {
		return nil, fmt.Errorf("list isulad's containers: %w", err)
	}
	found := map[string][]string{}
	for called := range strings.FieldsSeq(list) {
		parts := strings.Split(called, "_")
		at := slices.IndexFunc(parts, func(part string) bool { return engine.OfRun(part, d.env.RunID) })
		if at < 0 || parts[0] != "k8s" {
			continue
		}
		id := called // by which isulad knows it as well
		if text, err := d.isula(ctx, "inspect", called); err == nil {
			if states, err := engine.Inspected([]byte(text)); err == nil && len(states) == 1 {
				id = states[0].ID
			}
		}
		found[parts[at]] = append(found[parts[at]], id)
	}
	return found, nil
}

// isula runs isulad's own command line.
func (t *Target) isula(ctx context.Context, verb string, rest ...string) (string, error) {
	return t.run(ctx, "isula", slices.Concat([]string{verb, "-H", "unix://" + t.socket}, rest)...)
}

// removeUnanswered removes what only isulad's own list has: as a pod, which gives back its
// network, and if it is none for CRI, as a container.
func (d *driver) removeUnanswered(ctx context.Context, names []string) error {
	if d.engineName != isuladEngine {
		return nil // the others remove it themselves, or CRI lists it when they are done
	}
	all, err := d.unanswered(ctx)
	errs := []error{err}
	for name, ids := range all {
		if !slices.Contains(names, name) {
			continue
		}
		for _, id := range ids {
			_, stop := d.conn.runtime.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: id})
			_, remove := d.conn.runtime.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: id})
			if left, err := d.isula(ctx, "rm", "-f", id); err != nil && !strings.Contains(strings.ToLower(left+err.Error()), "no such") {
				errs = append(errs, worst("remove the container "+id+" of the pod "+name, err, errors.Join(stop, remove)))
			}
		}
	}
	return errors.Join(errs...)
}
