package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// imageAbsent is a kubelet's reason for an image that is missing and must not be pulled.
const imageAbsent = "ErrImageNeverPull"

// ended returns why a pod will never be ready; nil if it may still become ready.
func ended(p *corev1.Pod, c *corev1.ContainerStatus, gone bool) *record.Failure {
	waiting, over := c.State.Waiting, c.State.Terminated
	switch {
	case waiting != nil && slices.Contains([]string{imageAbsent, "InvalidImageName"}, waiting.Reason):
		return &record.Failure{Kind: record.FailError, Detail: "the node " + p.Spec.NodeName + " does not have the workload's image: " + said(waiting.Reason, waiting.Message) + "; " + givingImage(c.Image, "")}
	case gone || p.DeletionTimestamp != nil:
		return &record.Failure{Kind: record.FailState, Detail: "the pod was deleted before it was ready, not by tare" + disrupted(p)}
	case p.Status.Phase == corev1.PodFailed && (over == nil || p.Status.Reason != ""):
		return &record.Failure{Kind: record.FailState, Detail: "the pod failed: " + said(p.Status.Reason, p.Status.Message)}
	case over != nil:
		return &record.Failure{Kind: record.FailWorkload, Exit: int(over.ExitCode),
			Detail: fmt.Sprintf("the workload ended with status %d before the pod was ready: %s", over.ExitCode, said(over.Reason, over.Message))}
	}
	return nil
}

// disrupted returns the reason of a disruption, "" for none.
func disrupted(p *corev1.Pod) string {
	if c := kube.Condition(p, corev1.DisruptionTarget); c.Status == corev1.ConditionTrue {
		return ": " + said(c.Reason, c.Message)
	}
	return ""
}

// waits returns what keeps a pod from being ready so far, "" if unknown.
func waits(p *corev1.Pod, c *corev1.ContainerStatus) string {
	if at := kube.Condition(p, corev1.PodScheduled); at.Status == corev1.ConditionFalse {
		return said(at.Reason, at.Message)
	}
	if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
		return said(w.Reason, w.Message)
	}
	return ""
}

// because adds the state of the node to the failure of a pod that was deleted by others or timed
// out. A time-out also has the last known obstacle.
func (d *driver) because(name string, limit time.Duration, err error) error {
	var refused *batch.Refusal
	switch {
	case errors.As(err, &refused) && refused.Failure.Kind == record.FailState:
		f := refused.Failure
		if node, _ := d.unwell(name); node != "" {
			f.Detail = node + "; " + f.Detail
		}
		return &batch.Refusal{Failure: f}
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	why, _, _ := strings.Cut(err.Error(), ": "+context.DeadlineExceeded.Error())
	node, asked := d.unwell(name)
	why = strings.TrimSpace(node + " " + why)
	if asked != nil && !apierrors.IsNotFound(asked) {
		why = strings.Join(strings.Fields(why+" no answer from the API server: "+asked.Error()), " ")
	}
	return &batch.Refusal{Failure: record.Failure{Kind: record.FailTimeout,
		Detail: fmt.Sprintf("not done within %v: %s", limit, cmp.Or(why, "no reason reported"))}}
}

// unwell returns why the node of a pod, or the only one that it can run on, is not ready; "" if it is
// ready.
func (d *driver) unwell(pod string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // not from the operation, which may have timed out
	defer cancel()
	p, err := d.Pods(d.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // a pod deleted by force from a dead node is not found
		return "", err
	}
	node := cmp.Or(p.Spec.NodeName, d.e.Node)
	if node == "" {
		return "", nil
	}
	n, err := d.Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if c := kube.NodeReady(n); c.Status != corev1.ConditionTrue {
		return strings.Join(strings.Fields("the node "+n.Name+" "+notReady(&c)), " "), nil
	}
	return "", nil
}

// passing reports whether an error is temporary, so that a retry may help: the API server did not
// answer, or is restarting.
func passing(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// insist repeats a request until there is a definite answer. An API server that has just started
// and has not read its Roles yet refuses even allowed requests.
func (d *driver) insist(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		early := d.tried && apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ")
		if err == nil || !early && !passing(err) {
			return err
		}
		if machine.Sleep(ctx, retryPause) != nil {
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}
