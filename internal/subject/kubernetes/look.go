package kubernetes

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// pods lists the run's pods in any state: those with its label and one of its names.
func (d *driver) pods(ctx context.Context) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var list *corev1.PodList
	err := d.insist(ctx, func() (err error) {
		list, err = d.Pods(d.Namespace).List(ctx, d.ofRun())
		return err
	})
	if err != nil {
		return nil, kube.Explain(err, "list the run's pods")
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Labels[engine.RunLabel] != d.env.RunID || !engine.OfRun(p.Name, d.env.RunID)
	}), nil
}

// Look implements engine.Driver.
func (d *driver) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	pods, err := d.pods(ctx)
	if err != nil {
		return nil, err
	}
	d.seen = nil
	if d.node != nil {
		if d.seen, err = d.node.Look(ctx); err != nil {
			return nil, fmt.Errorf("query the node's engine: %w", err)
		}
	}
	known := map[string]engine.State{}
	for i := range pods {
		p := &pods[i]
		if !slices.Contains(names, p.Name) {
			continue
		}
		s := d.seen[p.Name]
		s.Name, s.Said, s.Status, s.Remote = p.Name, string(p.Status.Phase), engine.Other, d.node == nil
		if s.ID == "" {
			s.ID = string(p.UID)
		}
		s.PidUnknown = s.Pid == 0
		c := kube.Container(p, container)
		switch {
		case p.Status.Phase == corev1.PodRunning && c.State.Running != nil:
			s.Status = engine.Running
		case p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
			s.Status, s.Why = engine.Exited, said(p.Status.Reason, p.Status.Message)
			if over := c.State.Terminated; over != nil {
				s.Exit, s.OOMKilled = int(over.ExitCode), over.Reason == "OOMKilled"
			}
		}
		known[p.Name] = s
	}
	return known, nil
}

// Output implements engine.Driver.
func (d *driver) Output(ctx context.Context, containers []engine.State) (string, error) {
	texts := make([]string, len(containers))
	err := engine.Each(len(containers), func(i int) (err error) {
		texts[i], err = d.log(ctx, containers[i].Name, maxLog, &corev1.PodLogOptions{LimitBytes: new(int64(maxLog))})
		return err
	})
	return strings.Join(texts, ""), err
}

// Limits of reading a pod's log, and the end of the log of one that failed. Engines split lines into
// pieces of 16 KiB.
const (
	maxLog    = 64 << 10
	lastLines = int64(20)
	maxEnd    = lastLines * 32 << 10
)

// lastOutput returns the end of a pod's output, "" if unavailable.
func (d *driver) lastOutput(ctx context.Context, pod string) string {
	text, _ := d.log(ctx, pod, maxEnd, &corev1.PodLogOptions{TailLines: new(lastLines)})
	return engine.Last(text)
}

// log reads up to most bytes of a pod's log.
func (d *driver) log(ctx context.Context, pod string, most int64, o *corev1.PodLogOptions) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o.Container = container
	r, err := d.Pods(d.Namespace).GetLogs(pod, o).Stream(ctx)
	if err != nil {
		return "", kube.Explain(err, "read the log of the pod "+pod)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, most))
	return string(text), err
}

// List implements engine.Driver.
func (d *driver) List(ctx context.Context) (names []string, err error) {
	pods, err := d.pods(ctx)
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	return names, err
}

const (
	// quickly is the grace period (s) for untimed deletions.
	quickly = 1
	// waiting is how long to wait for a node that is not ready, before its pods are deleted by
	// force. The node removes what is left of them when it comes back.
	waiting = 5 * time.Second
	// glance is the interval of checks for remaining pods.
	glance = 100 * time.Millisecond
)

// Remove implements engine.Driver. It waits until the pods are gone, since they use their nodes until
// then.
func (d *driver) Remove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if err := d.delete(ctx, names, quickly); err != nil {
		return err
	}
	for began := time.Now(); ; {
		pods, err := d.pods(ctx)
		left := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !slices.Contains(names, p.Name) })
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Since(began) > waiting {
			if err := d.delete(ctx, d.stranded(ctx, left), 0); err != nil {
				return err
			}
		}
		if machine.Sleep(ctx, glance) != nil {
			return fmt.Errorf("%d pods are still there, such as %s: %w", len(left), left[0].Name, ctx.Err())
		}
	}
}

func (d *driver) delete(ctx context.Context, names []string, grace int64) error {
	return engine.Each(len(names), func(i int) error {
		err := d.insist(ctx, func() error {
			return d.Pods(d.Namespace).Delete(ctx, names[i], metav1.DeleteOptions{GracePeriodSeconds: &grace})
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return kube.Explain(err, "delete the pod "+names[i])
	})
}

// stranded returns the pods whose node is not ready or missing.
func (d *driver) stranded(ctx context.Context, pods []corev1.Pod) (names []string) {
	for i := range pods {
		n, err := d.Nodes().Get(ctx, pods[i].Spec.NodeName, metav1.GetOptions{})
		ready := err == nil && kube.NodeReady(n).Status == corev1.ConditionTrue
		if pods[i].Spec.NodeName != "" && (apierrors.IsNotFound(err) || err == nil && !ready) {
			names = append(names, pods[i].Name)
		}
	}
	return names
}

// Import implements engine.Driver. If the nodes must have the image already, Open has checked that
// with a trial pod.
func (d *driver) Import(ctx context.Context) (made bool, err error) {
	if d.node == nil || d.e.Image != "" {
		return false, nil
	}
	return d.node.Import(ctx)
}

// Drop implements engine.Driver.
func (d *driver) Drop(ctx context.Context, ref string) error {
	if d.node == nil {
		return nil
	}
	return d.node.Drop(ctx, ref)
}

// Images implements engine.Driver.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	if d.node == nil {
		return nil, nil
	}
	return d.node.Images(ctx)
}

// Clean implements subject.Cleaner. It removes images only on this machine's node.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	d := &driver{Target: t, env: subject.Env{RunID: runID}}
	if t.here && t.e.Image == "" && len(t.nodes) == 1 {
		n, err := t.engine(ctx, d.env)
		if err != nil {
			return nil, engine.Failed(t.name, "clean up", err)
		}
		defer n.Close()
		d.node = n
	}
	return engine.Clean(ctx, d, t.name, "pod", runID, dryRun)
}
