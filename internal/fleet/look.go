package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/term"
)

// sight is the state of one node's pod, as read from the API.
type sight struct {
	pod    *corev1.Pod // nil: none
	ready  bool        // the pod is ready, and the fields below are not set
	job    *batchv1.Job
	node   *corev1.Node
	events []corev1.Event
	keeps  bool // a container of the pod keeps the record
}

// outlook is the interpretation of a sight.
type outlook struct {
	stage  string
	over   bool          // the plan is done, and the record can be fetched
	why    string        // the reason of a failure
	within time.Duration // the failure is final after this time
}

// await polls a node's pod until its plan is done. It returns the pod if its record can be
// fetched.
func (f *Fleet) await(ctx context.Context, node, job string) (*corev1.Pod, error) {
	var since, spoke time.Time // time of the last change of why, and of the last log read
	var last string
	for {
		s, err := f.see(ctx, node, job)
		if err != nil {
			return nil, err
		}
		o := f.judge(s)
		switch {
		case o.over:
			return s.pod, ended(s.pod)
		case o.why != last:
			since, last = time.Now(), o.why
		}
		if o.why != "" && time.Since(since) >= o.within {
			return nil, errors.New(o.why)
		}
		if o.stage == running && time.Since(spoke) >= 5*f.look {
			spoke, o.stage = time.Now(), cmp.Or(f.says(ctx, s.pod.Name), o.stage)
		}
		f.progress(node, cmp.Or(o.why, o.stage))
		if err := machine.Sleep(ctx, f.look); err != nil {
			return nil, err
		}
	}
}

const running = "its plan is running"

// see reads the state of one node. If the pod is ready, it reads nothing else.
func (f *Fleet) see(ctx context.Context, node, job string) (s sight, err error) {
	s.keeps = f.Results.Here()
	err = f.try(ctx, "list its pod", func() error {
		pods, err := f.Client.Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
		if err == nil && len(pods.Items) > 0 {
			s.pod = &pods.Items[0]
		}
		return err
	})
	s.ready = s.pod != nil && s.pod.Status.Phase == corev1.PodRunning && kube.Condition(s.pod, corev1.PodReady).Status == corev1.ConditionTrue
	if err != nil || s.ready {
		return s, err
	}
	err = f.try(ctx, "get its Job", func() error {
		s.job, err = found(f.Client.Jobs(f.Namespace).Get(ctx, job, metav1.GetOptions{}))
		return err
	})
	if err == nil {
		err = f.try(ctx, "get the node", func() error {
			s.node, err = found(f.Client.Nodes().Get(ctx, node, metav1.GetOptions{}))
			return err
		})
	}
	if err == nil && s.pod == nil {
		err = f.try(ctx, "list the events of its Job", func() error {
			events, err := f.Client.Events(f.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + job})
			if err == nil {
				s.events = events.Items
			}
			return err
		})
	}
	return s, err
}

// found returns nil for a missing object.
func found[T any](o *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// judge interprets a sight.
func (f *Fleet) judge(s sight) outlook {
	switch {
	case s.ready:
		return outlook{stage: running}
	case s.pod == nil:
		return f.unmade(s)
	}
	keeper, runner := kube.Container(s.pod, keeperName), kube.Container(s.pod, runnerName)
	gone := kube.Condition(s.pod, corev1.DisruptionTarget)
	switch why := s.waits(); {
	case gone.Status == corev1.ConditionTrue:
		return outlook{why: fmt.Sprintf("its pod was evicted: %s: %s%s", gone.Reason, term.Clean(gone.Message), prefixed("; ", s.down()))}
	case s.job == nil && s.pod.DeletionTimestamp != nil:
		return outlook{why: "its Job was deleted"}
	case failure(s.job) != "":
		return outlook{why: failure(s.job)}
	case s.pod.DeletionTimestamp != nil:
		return outlook{why: "its pod was deleted"}
	case runner.State.Terminated != nil && (!s.keeps || keeper.State.Running != nil):
		return outlook{over: true}
	case s.pod.Status.Phase == corev1.PodSucceeded, s.pod.Status.Phase == corev1.PodFailed, s.keeps && keeper.State.Terminated != nil:
		return outlook{why: fmt.Sprintf("its pod ended (%s%s), so its record is lost",
			s.pod.Status.Phase, term.Clean(prefixed(": ", cmp.Or(s.pod.Status.Message, s.pod.Status.Reason))))}
	case s.down() != "":
		return outlook{why: s.down(), within: f.away}
	case why != "":
		return outlook{why: why, within: f.patience}
	}
	return outlook{stage: "its pod is starting"}
}

// unmade interprets a sight without a pod.
func (f *Fleet) unmade(s sight) outlook {
	if s.job == nil {
		return outlook{why: "its Job was deleted", within: f.patience} // a restarted API server may not have read it yet
	}
	if why := failure(s.job); why != "" {
		return outlook{why: why}
	}
	o := outlook{why: "its Job has no pod", within: f.patience}
	for _, e := range s.events {
		if e.InvolvedObject.Name == s.job.Name && e.Type == corev1.EventTypeWarning {
			o.why = fmt.Sprintf("its Job has no pod: %s: %s", e.Reason, term.Clean(e.Message))
			if strings.Contains(e.Message, " is forbidden: ") { // by a quota or an admission controller
				o.within = 0
			}
		}
	}
	return o
}

// failure returns why a Job failed, such as DeadlineExceeded. For a failed pod the pod has the
// reason.
func failure(j *batchv1.Job) string {
	if j == nil {
		return ""
	}
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && c.Reason != batchv1.JobReasonBackoffLimitExceeded {
			return fmt.Sprintf("its Job failed: %s: %s", c.Reason, term.Clean(c.Message))
		}
	}
	return ""
}

// down returns why the node of a pod is not ready, or "".
func (s *sight) down() string {
	if s.node == nil {
		return "the cluster has no such node"
	}
	if c := kube.NodeReady(s.node); c.Type != "" && c.Status != corev1.ConditionTrue {
		return fmt.Sprintf("the node is not ready: %s: %s", c.Reason, term.Clean(c.Message))
	}
	return ""
}

// waits returns why a pod does not start: it is not scheduled, or its image is not pulled.
func (s *sight) waits() string {
	if c := kube.Condition(s.pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		cordoned := ""
		if s.node != nil && s.node.Spec.Unschedulable {
			cordoned = "the node is cordoned; "
		}
		return fmt.Sprintf("%sits pod is not scheduled: %s: %s", cordoned, c.Reason, term.Clean(c.Message))
	}
	for _, c := range s.pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			// A retried pull alternates between two reasons.
			return fmt.Sprintf("its container is waiting: %s: %s", strings.Replace(w.Reason, "ErrImagePull", "ImagePullBackOff", 1), term.Clean(c.Image))
		}
	}
	return ""
}

// ended returns the error of a finished plan, or nil.
func ended(pod *corev1.Pod) error {
	t := kube.Container(pod, runnerName).State.Terminated
	switch {
	case t == nil || t.ExitCode == 0:
		return nil
	case t.ExitCode == 2:
		return errors.New("operations failed; its record lists them (exit status 2)")
	}
	last := ""
	for line := range strings.Lines(t.Message) {
		if strings.HasPrefix(line, "tare: ") || !strings.HasPrefix(last, "tare: ") {
			last = strings.TrimSpace(line)
		}
	}
	return fmt.Errorf("tare run exited with status %d, %s%s", t.ExitCode, t.Reason, prefixed(": ", term.Clean(last)))
}

// says returns the last line of a plan's log, its progress. A node may send more than requested,
// or nothing.
func (f *Fleet) says(ctx context.Context, pod string) string {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	const most = 4096
	r, err := f.Client.Pods(f.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: runnerName, TailLines: new(int64(1)), LimitBytes: new(int64(most))}).Stream(ctx)
	if err != nil {
		return ""
	}
	defer r.Close()
	text, _ := io.ReadAll(io.LimitReader(r, most))
	return term.Clean(strings.TrimSpace(string(text)))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// try repeats a request while the API server is unavailable, such as during a restart, or does
// not know permissions yet.
func (f *Fleet) try(ctx context.Context, tried string, do func() error) error {
	began := time.Now()
	for {
		err := do()
		var status apierrors.APIStatus
		limit := time.Duration(0)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &status), status.Status().Code >= 500, status.Status().Code == 429:
			limit = f.silent
		case strings.Contains(err.Error(), " cannot "), status.Status().Code == 401: // permissions were checked before
			limit = f.patience
		}
		if time.Since(began) >= limit {
			return kube.Explain(err, tried)
		}
		if err := machine.Sleep(ctx, f.look); err != nil {
			return err
		}
	}
}
