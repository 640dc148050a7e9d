package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/term"
)

// background removes a Job with its pods.
var background = metav1.DeletePropagationBackground

func (f *Fleet) removeJob(ctx context.Context, name string) error {
	err := f.Client.Jobs(f.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return kube.Explain(err, "remove Job "+name)
}

// remove removes what a run made, and waits until its pods are gone: what they run ends
// in order, and takes away what it made on the node.
func (f *Fleet) remove(ctx context.Context, results []Result) error {
	var errs []error
	for _, r := range results {
		if !r.left {
			continue
		}
		errs = append(errs, f.try(ctx, "remove its Job", func() error { return f.removeJob(ctx, jobName(f.RunID, r.Node)) }))
	}
	err := f.Client.ConfigMaps(f.Namespace).Delete(ctx, f.ConfigMap().Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, kube.Explain(err, "remove the plan's ConfigMap"))
	}
	return errors.Join(append(errs, podsGone(ctx, f.Client, f.RunID, f.look))...)
}

// podsGone waits until no pod of a run is there.
func podsGone(ctx context.Context, c *kube.Client, runID string, look time.Duration) error {
	for {
		pods, err := c.Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: engine.RunLabel + "=" + runID})
		if err == nil && len(pods.Items) == 0 {
			return nil
		}
		if machine.Sleep(ctx, look) == nil {
			continue
		}
		if err != nil {
			return kube.Explain(err, "list pods")
		}
		p := pods.Items[0]
		return fmt.Errorf("pod %s is still there, on node %s", p.Name, term.Clean(p.Spec.NodeName))
	}
}

// Leftover is what one run left in a cluster.
type Leftover struct {
	RunID   string
	Objects []string // as kind/name
	Leased  bool     // a Lease tells that the run is dead; else nothing tells
	client  *kube.Client
	remove  []func(context.Context) error // the Lease's last
}

// Leftovers finds in a namespace what dead runs left: Jobs, pods, ConfigMaps and Leases
// with the label of a run, but for what has another owner. live are the runs whose Lease
// is renewed.
func Leftovers(ctx context.Context, c *kube.Client) (left []Leftover, live []string, err error) {
	alive, err := kube.Beats(ctx, c, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*Leftover{}
	add := func(kind string, o metav1.ObjectMeta, remove func(ctx context.Context, name string, o metav1.DeleteOptions) error) {
		id := o.Labels[engine.RunLabel]
		beats, leased := alive[id]
		if beats || len(o.OwnerReferences) > 0 { // it goes with its owner, or is that one's business
			return
		}
		if found[id] == nil {
			found[id] = &Leftover{RunID: id, Leased: leased, client: c}
		}
		l := found[id]
		l.Objects = append(l.Objects, kind+"/"+o.Name)
		l.remove = append(l.remove, func(ctx context.Context) error {
			// The very one that was found, were there another of that name by now.
			err := remove(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &o.UID}})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			return kube.Explain(err, "remove "+kind+"/"+o.Name)
		})
	}
	made := metav1.ListOptions{LabelSelector: kube.Made}
	jobs, err := c.Jobs(c.Namespace).List(ctx, made)
	if err != nil {
		return nil, nil, kube.Explain(err, "list Jobs of runs")
	}
	for _, o := range jobs.Items {
		add("job", o.ObjectMeta, c.Jobs(c.Namespace).Delete)
	}
	pods, err := c.Pods(c.Namespace).List(ctx, made)
	if err != nil {
		return nil, nil, kube.Explain(err, "list pods of runs")
	}
	for _, o := range pods.Items {
		add("pod", o.ObjectMeta, c.Pods(c.Namespace).Delete)
	}
	plans, err := c.ConfigMaps(c.Namespace).List(ctx, made)
	if err != nil {
		return nil, nil, kube.Explain(err, "list ConfigMaps of runs")
	}
	for _, o := range plans.Items {
		add("configmap", o.ObjectMeta, c.ConfigMaps(c.Namespace).Delete)
	}
	leases, err := c.Leases(c.Namespace).List(ctx, made)
	if err != nil {
		return nil, nil, kube.Explain(err, "list Leases of runs")
	}
	for _, o := range leases.Items { // last: by it the rest is found
		add("lease", o.ObjectMeta, c.Leases(c.Namespace).Delete)
	}
	for id, beats := range alive {
		if beats {
			live = append(live, id)
		}
	}
	slices.Sort(live)
	for _, id := range slices.Sorted(maps.Keys(found)) {
		left = append(left, *found[id])
	}
	return left, live, nil
}

// Remove removes all of it, and its Lease once the rest is gone.
func (l *Leftover) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usual.removal)
	defer cancel()
	for i, remove := range l.remove {
		var err error
		if i == len(l.remove)-1 {
			err = podsGone(ctx, l.client, l.RunID, usual.look)
		}
		if err == nil {
			err = remove(ctx)
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", l.RunID, err)
		}
	}
	return nil
}
