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

// remove removes the objects of a run and waits until its pods are gone. Their plans end in
// order and clean up the node.
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

// podsGone waits until all pods of a run are gone.
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
		return fmt.Errorf("pod %s still exists on node %s", p.Name, term.Clean(p.Spec.NodeName))
	}
}

// Leftover is the remaining objects of one run in a cluster.
type Leftover struct {
	RunID   string
	Objects []string // as kind/name
	Leased  bool     // a Lease shows that the run is dead; else its state is unknown
	client  *kube.Client
	remove  []func(context.Context) error // the Lease comes last
}

// Leftovers finds the remaining objects of dead runs in a namespace: Jobs, pods, ConfigMaps and
// Leases with the label of a run and without another owner. live are the runs with a renewed
// Lease.
func Leftovers(ctx context.Context, c *kube.Client) (left []Leftover, live []string, err error) {
	alive, err := kube.Beats(ctx, c, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*Leftover{}
	for _, k := range []kind{
		kindOf("Jobs", c.Jobs(c.Namespace)), kindOf("pods", c.Pods(c.Namespace)), kindOf("ConfigMaps", c.ConfigMaps(c.Namespace)),
		kindOf("Leases", c.Leases(c.Namespace)), // last: the Lease identifies the run
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
			if beats || len(is.GetOwnerReferences()) > 0 { // its owner removes it
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

// kind lists and removes the objects of one kind in a namespace.
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
		// The UID protects another object of the same name.
		err := k.remove(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return kube.Explain(err, "remove "+called)
	})
}

// Remove removes all objects, the Lease last.
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
