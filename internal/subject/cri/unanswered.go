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

// isuladHides is how long isulad may continue an abandoned RunPodSandbox before it lists the
// pod's container: up to 5 s were seen (2.1.6).
const isuladHides = 8 * time.Second

// CallsHiddenFor implements engine.CallHider.
func (d *driver) CallsHiddenFor() time.Duration { return d.facts.hides }

// unanswered returns the ids, by lane name, of pods and containers that an engine made or is
// still making for abandoned calls and that CRI does not list. It queries the engine only after
// an abandoned call.
func (d *driver) unanswered(ctx context.Context) (map[string][]string, error) {
	abandoned := d.held == nil || d.command != nil
	for _, h := range d.held {
		abandoned = abandoned || h.abandoned
	}
	switch {
	case !abandoned:
		return nil, nil
	case d.engineName == isuladEngine:
		return d.isulaPods(ctx)
	case d.engineName != containerdEngine:
		return nil, nil
	}
	c, err := containerd.Connect(ctx, d.socket, criNamespace)
	if err != nil {
		return nil, nil // the socket serves only CRI
	}
	defer func() { _ = c.Close() }()
	return containerd.PodsOf(ctx, c, d.env.RunID)
}

// isulaPods reads isulad's own list of containers. isulad names a CRI container
// k8s_NAME_POD_NAMESPACE_UID_ATTEMPT, and a pod's own container k8s_POD_….
func (d *driver) isulaPods(ctx context.Context) (map[string][]string, error) {
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
		id := called // isulad accepts the name, too
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

// removeUnanswered removes pods that only isulad's own list has. It removes each through CRI as
// a pod, which releases its network, and then as a container, in case CRI does not know the pod.
func (d *driver) removeUnanswered(ctx context.Context, names []string) error {
	if d.engineName != isuladEngine {
		return nil // other engines remove it themselves, or list it later
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
