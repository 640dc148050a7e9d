package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
	for _, k := range []kind{
		kindOf("Jobs", c.Jobs(c.Namespace)), kindOf("pods", c.Pods(c.Namespace)), kindOf("ConfigMaps", c.ConfigMaps(c.Namespace)),
		kindOf("Leases", c.Leases(c.Namespace)), // last: by it the rest is found
	} {
		list, err := k.list(ctx, metav1.ListOptions{LabelSelector: kube.Made})
		if err != nil {
			return nil, nil, kube.Explain(err, "list "+k.name+" of runs")
		}
		err = apimeta.EachListItem(list, func(o runtime.Object) error {
			is, err := apimeta.Accessor(o)
			if err != nil {
				return err
			}
			id := is.GetLabels()[engine.RunLabel]
			beats, leased := alive[id]
			if beats || len(is.GetOwnerReferences()) > 0 { // it goes with its owner, or is that one's business
				return nil
			}
			if found[id] == nil {
				found[id] = &Leftover{RunID: id, Leased: leased, client: c}
			}
			found[id].add(k, is.GetName(), is.GetUID())
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
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

// kind are the objects of one, in a namespace.
type kind struct {
	name   string // "Jobs"
	list   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	remove func(ctx context.Context, name string, o metav1.DeleteOptions) error
}

func kindOf[T, L runtime.Object](name string, of kube.Objects[T, L]) kind {
	return kind{name: name, remove: of.Delete, list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) }}
}

func (l *Leftover) add(k kind, name string, uid types.UID) {
	called := strings.ToLower(strings.TrimSuffix(k.name, "s")) + "/" + name
	l.Objects = append(l.Objects, called)
	l.remove = append(l.remove, func(ctx context.Context) error {
		// The very one that was found, were there another of that name by now.
		err := k.remove(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return kube.Explain(err, "remove "+called)
	})
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
