package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// driver implements engine.Driver for one run on a cluster.
type driver struct {
	*Target
	env   subject.Env
	ref   string    // of the image
	node  *cri.Node // the engine of the only node, if that is this machine; else nil
	watch *follower

	readiness *corev1.Probe           // of the workload; nil: ready when it runs
	tried     bool                    // a pod has run, so the Role has all permissions
	seen      map[string]engine.State // the last states of the node's engine
}

// session is a session on a cluster.
type session struct {
	*engine.Session
	*driver
}

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	d := &driver{Target: t, env: env}
	if err := d.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		names, _ := d.List(clean)
		return nil, engine.Failed(t.name, "open", err, d.Remove(clean, names), d.close(clean))
	}
	o := engine.Options{
		Target: t.name, Called: "the cluster", Driver: d, Env: env, Guest: t.clock() == "guest",
		Image: "kubernetes " + t.Config.Host + " " + d.ref, Ref: d.ref,
		Call: d.call, Warm: d.warm, Stamp: d.stamp, Closed: d.close,
	}
	if d.node != nil {
		o.Image = "kubernetes " + d.node.Socket() + " " + d.ref
		o.Daemons = d.node.Daemons
	}
	s, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &session{s, d}, nil
}

func (d *driver) open(ctx context.Context) error {
	w := d.env.Workload
	if w.Device != "" {
		return fmt.Errorf("a device in a pod needs a volume of the cluster: %w", subject.ErrUnsupported)
	}
	if d.env.Limits.Overhead() != (subject.Limits{}) {
		return fmt.Errorf("a pod's overhead comes from its RuntimeClass, and the kubelet adds it to the limits: omit overhead_cpu and overhead_memory: %w", subject.ErrUnsupported)
	}
	if err := engine.Elsewhere(w, "node", d.Elsewhere()); err != nil {
		return err
	}
	if d.ref = d.e.Image; d.ref == "" {
		probe, err := d.env.Image()
		if err != nil {
			return err
		}
		d.ref = probe.Ref
	} else if len(w.Files) > 0 {
		return fmt.Errorf("add files to the image %s, which is not tare's: %w", d.ref, subject.ErrUnsupported)
	}
	var err error
	if d.readiness, err = readiness(d.env.Ready); err != nil {
		return err
	}
	if err := d.fits(ctx); err != nil {
		return err
	}
	if d.watch, err = follow(ctx, d.Client, d.env.RunID); err != nil {
		return err
	}
	return d.try(ctx)
}

// fits refuses a batch that exceeds the nodes' pod limits. Pods of other users count towards
// these limits.
func (d *driver) fits(ctx context.Context) error {
	room := int64(0)
	for i := range d.nodes {
		n := &d.nodes[i]
		list, err := d.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
		if err != nil {
			return kube.Explain(err, "count the pods on the node "+n.Name)
		}
		there := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		})
		if room += max(n.Status.Allocatable.Pods().Value()-int64(len(there)), 0); room >= int64(d.env.Lanes) {
			return nil
		}
	}
	return fmt.Errorf("%d pods at once do not fit: the %d usable nodes have room for %d more (maxPods of their kubelets); use fewer lanes", d.env.Lanes, len(d.nodes), room)
}

// try runs one pod before the measurement. It shows what the cluster refuses, whether the pod's
// node has the image, and whether the engine of this machine is the node's.
func (d *driver) try(ctx context.Context) error {
	name := engine.NewName(d.env.RunID, 0)
	ctx, cancel := context.WithTimeout(ctx, max(d.env.Timeout, patience))
	defer cancel()
	tried := d.run(name, engine.Place{})(ctx)
	d.watch.forget(name)
	p, err := d.Pods(d.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return cmp.Or(tried, kube.Explain(err, "get the trial pod"))
	}
	var own error
	if d.here && len(d.nodes) == 1 {
		own = d.connectEngine(ctx, string(p.UID))
	}
	absent := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == imageAbsent
	})
	if tried != nil && absent && d.e.Image == "" {
		tried = nil // Import will import the image
		if d.node == nil {
			tried = fmt.Errorf("cannot import the image on the node %s: %w; %s", p.Spec.NodeName, own, givingImage(d.ref, d.nodes[0].Status.NodeInfo.ContainerRuntimeVersion))
		}
	}
	err = errors.Join(tried, d.Remove(ctx, []string{name}))
	d.tried = err == nil
	return err
}

// connectEngine connects to the engine of this machine. That engine is the node's only if it
// has the pod with this uid: the machine may have another engine, or a node in a container.
func (d *driver) connectEngine(ctx context.Context, uid string) error {
	n, err := d.engine(ctx, d.env)
	if err != nil {
		return err
	}
	has, err := n.Has(ctx, uid)
	if !has || err != nil {
		n.Close()
		return cmp.Or(err, fmt.Errorf("the engine at %s does not have the pod, so it is not the node's", n.Socket()))
	}
	d.node = n
	return nil
}

// close implements engine.Options.Closed.
func (d *driver) close(context.Context) error {
	if d.watch != nil {
		d.watch.close()
	}
	if d.node != nil {
		d.node.Close()
	}
	return nil
}

func (d *driver) warm(ctx context.Context, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, d.env.Timeout)
	defer cancel()
	return d.insist(ctx, func() error {
		_, err := d.Pods(d.Namespace).List(ctx, d.ofRun())
		return kube.Explain(err, "list the run's pods")
	})
}

func (d *driver) ofRun() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: engine.RunLabel + "=" + d.env.RunID}
}

// call returns a function that performs an operation on a lane.
func (d *driver) call(_ context.Context, op subject.Op, c engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	switch op {
	case subject.Run:
		return d.run(c.Name, place), "kubectl -n " + d.Namespace + " create pod " + c.Name, nil
	case subject.Remove:
		return d.remove(c.Name), "kubectl -n " + d.Namespace + " delete pod " + c.Name, nil
	}
	return nil, "", subject.ErrUnsupported
}

// run creates a pod and waits until it is ready.
func (d *driver) run(name string, place engine.Place) func(ctx context.Context) error {
	pod, l := d.pod(name, place), d.watch.expect(subject.Run, name)
	return func(ctx context.Context) error {
		tried := false
		err := d.insist(ctx, func() error {
			_, err := d.Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			if tried && apierrors.IsAlreadyExists(err) { // the reply was lost; the name is unique
				err = nil
			}
			tried = true
			return err
		})
		if err == nil {
			d.watch.returned(l)
			err = d.watch.await(ctx, l)
		} else {
			err = kube.Explain(err, "create the pod")
		}
		return d.because(name, d.env.Timeout, err)
	}
}

// remove deletes a pod and waits until it is gone.
func (d *driver) remove(name string) func(ctx context.Context) error {
	l := d.watch.expect(subject.Remove, name)
	return func(ctx context.Context) error {
		err := d.insist(ctx, func() error { return d.Pods(d.Namespace).Delete(ctx, name, metav1.DeleteOptions{}) })
		if err == nil {
			d.watch.returned(l)
			err = d.watch.await(ctx, l)
			if refused := (*batch.Refusal)(nil); errors.As(err, &refused) && d.env.Workload.Forgive(&refused.Failure) == nil {
				err = nil
			}
		} else {
			err = kube.Explain(err, "delete the pod")
		}
		return d.because(name, d.env.Timeout, err)
	}
}

// stamp implements engine.Options.Stamp.
func (d *driver) stamp(ctx context.Context, op subject.Op, names []string, samples []record.Sample) {
	var failed []int
	for i := range samples {
		d.stampOne(op, names[i], &samples[i])
		if f := samples[i].Failure; op == subject.Run && f != nil && f.Kind == record.FailWorkload && f.Output == "" {
			failed = append(failed, i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = engine.Each(len(failed), func(i int) error { // without a readable log the failure has no output
		samples[failed[i]].Failure.Output = d.lastOutput(ctx, names[failed[i]])
		return nil
	})
}

// stampOne adds a pod's stamps to a sample. Times of the node's engine are by this machine's
// time of day and converted to CLOCK_MONOTONIC. They are used if they are consistent with the
// other stamps: after the call, before what followed.
func (d *driver) stampOne(op subject.Op, name string, s *record.Sample) {
	l := d.watch.forget(name)
	if s.Start == 0 {
		return
	}
	from := l.sample
	for _, m := range []struct {
		to *int64
		at int64
	}{{&s.Returned, from.Returned}, {&s.Scheduled, from.Scheduled}, {&s.Sandbox, from.Sandbox}, {&s.Running, from.Running},
		{&s.Ready, from.Ready}, {&s.Exited, from.Exited}, {&s.Gone, from.Gone}} {
		if m.at >= s.Start { // earlier reports are not of this operation
			*m.to = m.at
		}
	}
	s.Told = from.Told
	seen, is := d.seen[name]
	if op != subject.Run || !is || s.Failure != nil {
		return
	}
	ahead := machine.Ahead()
	made, began := seen.Pod.Made-ahead, seen.Began-ahead
	if s.Start <= made && made <= began && began <= s.Ready && (s.First == 0 || made <= s.First) {
		s.NodeSandbox, s.NodeStarted = made, began
	}
}

// Throttled returns how often the API server delayed requests.
func (s *session) Throttled() int64 { return s.Client.Throttled.Load() }

// removeTimeout bounds the removal of a batch's pods.
const removeTimeout = 2 * time.Minute
