package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// follower watches a run's pods and the events about them. It keeps only the state of current
// operations.
type follower struct {
	*kube.Client
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	lives map[string]*life // by the pod's name
}

// life is an operation on a pod, with what the watch reported of it.
type life struct {
	op      subject.Op
	sample  record.Sample // has the stamps of the operation
	silence time.Duration // how long the watch was interrupted before a list showed news
	why     string        // the last reported obstacle
	failure *record.Failure
	over    chan struct{} // closed when the operation is done or has failed
	ended   bool          // over is closed
}

// stream is a list and the watch that continues it.
type stream struct {
	// list records the current objects after an interruption of the watch, and returns the version
	// for the next watch.
	list  func(ctx context.Context, silence time.Duration) (version string, err error)
	watch func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	o     metav1.ListOptions
}

// follow starts the watches. The error of a first attempt names missing permissions.
func follow(ctx context.Context, c *kube.Client, runID string) (*follower, error) {
	f := &follower{Client: c, lives: map[string]*life{}}
	pods, events := c.Pods(c.Namespace), c.Events(c.Namespace)
	own := metav1.ListOptions{LabelSelector: engine.RunLabel + "=" + runID}
	about := metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod"}
	streams := []stream{
		{o: own, watch: pods.Watch, list: func(ctx context.Context, silence time.Duration) (string, error) {
			asked := machine.Now()
			list, err := pods.List(ctx, own)
			if err != nil {
				return "", kube.Explain(err, "list the pods of the namespace "+c.Namespace)
			}
			f.all(list.Items, asked, silence)
			return list.ResourceVersion, nil
		}},
		// Events have no labels, so those of others arrive too. Old and missed events do not
		// matter: the status of the pods has the same information.
		{o: about, watch: events.Watch, list: func(ctx context.Context, _ time.Duration) (string, error) {
			o := about
			o.Limit = 1
			list, err := events.List(ctx, o)
			if err != nil {
				return "", kube.Explain(err, "list the events of the namespace "+c.Namespace)
			}
			return list.ResourceVersion, nil
		}},
	}
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	var errs []error
	for i := range streams {
		w, err := f.begin(going, &streams[i], 0)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.done.Go(func() { f.keep(going, &streams[i], w) })
	}
	if err := errors.Join(errs...); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *follower) close() {
	f.stop()
	f.done.Wait()
}

func (f *follower) begin(ctx context.Context, s *stream, silence time.Duration) (watch.Interface, error) {
	listing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := s.o
	var err error
	if o.ResourceVersion, err = s.list(listing, silence); err != nil {
		return nil, err
	}
	w, err := s.watch(ctx, o)
	return w, kube.Explain(err, "watch the pods and events of the namespace "+f.Namespace)
}

// retryPause is the first pause between attempts to reach the API server, which may be restarting.
const retryPause = 50 * time.Millisecond

// keep renews a watch. A server ends watches at will: after some time, at a restart, and with
// 410 Gone when it no longer has the version. Then the objects are listed and watched from
// there.
func (f *follower) keep(ctx context.Context, s *stream, w watch.Interface) {
	for {
		stay := context.AfterFunc(ctx, w.Stop)
		for e := range w.ResultChan() {
			if e.Type == watch.Error {
				break
			}
			f.note(e)
		}
		stay()
		w.Stop()
		if ctx.Err() != nil {
			return
		}
		var err error
		for ended, pause := time.Now(), retryPause; ; pause = min(2*pause, time.Second) {
			if w, err = f.begin(ctx, s, time.Since(ended)); err == nil {
				break
			}
			if machine.Sleep(ctx, pause) != nil {
				return
			}
		}
	}
}

func (f *follower) note(e watch.Event) {
	now := machine.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := e.Object.(type) {
	case *corev1.Pod:
		if l := f.lives[o.Name]; l != nil && !l.ended {
			l.update(o, e.Type == watch.Deleted, now)
		}
	case *corev1.Event:
		if l := f.lives[o.InvolvedObject.Name]; l != nil && !l.ended && l.op == subject.Run && e.Type != watch.Deleted {
			l.event(o, now)
		}
	}
}

// all records all pods of a list that was requested at asked, after an interruption of the watch.
func (f *follower) all(pods []corev1.Pod, asked int64, silence time.Duration) {
	now := machine.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, l := range f.lives {
		if l.ended {
			continue
		}
		before := l.stamped()
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case i >= 0:
			l.update(&pods[i], false, now)
		case l.op == subject.Remove || l.sample.Returned != 0 && l.sample.Returned < asked: // otherwise the pod may appear later
			l.update(&corev1.Pod{}, true, now)
		}
		if l.stamped() != before {
			l.silence = max(l.silence, silence)
		}
	}
}

// expect starts the observation of an operation on a pod.
func (f *follower) expect(op subject.Op, name string) *life {
	l := &life{op: op, over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives[name] = l
	return l
}

// forget ends the observation and returns its result, the zero life if there is none.
func (f *follower) forget(name string) life {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lives[name]
	delete(f.lives, name)
	if l == nil {
		return life{}
	}
	return *l
}

func (f *follower) returned(l *life) {
	now := machine.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	l.sample.Returned = now
}

// await waits until an operation is over. Its time is unknown if the watch was interrupted for
// more than a twentieth of it.
func (f *follower) await(ctx context.Context, l *life) error {
	began := time.Now()
	select {
	case <-l.over:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	const share = 20
	switch {
	case l.ended && l.failure != nil:
		return &batch.Refusal{Failure: *l.failure}
	case !l.ended:
		return fmt.Errorf("%s: %w", l.why, ctx.Err())
	case l.silence > time.Since(began)/share:
		return &batch.Refusal{Failure: record.Failure{Kind: record.FailError,
			Detail: fmt.Sprintf("the operation is done at an unknown time: the watch was interrupted for %v", l.silence.Round(time.Millisecond))}}
	}
	return nil
}

// stamped counts the stamps.
func (l *life) stamped() (n int) {
	for _, stamp := range record.Stamps {
		if _, ok := l.sample.Time(stamp); ok {
			n++
		}
	}
	return n
}

func (l *life) end(f *record.Failure) {
	l.failure, l.ended = f, true
	close(l.over)
}

// update records the current state of a pod.
func (l *life) update(p *corev1.Pod, gone bool, now int64) {
	if l.op == subject.Run {
		l.starts(p, gone, now)
		return
	}
	if over := kube.Container(p, container).State.Terminated; over != nil && l.sample.Exited == 0 {
		l.sample.Exited = now
		if over.ExitCode != 0 {
			l.failure = &record.Failure{Kind: record.FailWorkload, Exit: int(over.ExitCode),
				Detail: fmt.Sprintf("the workload ended with status %d instead of 0: %s", over.ExitCode, said(over.Reason, over.Message))}
		}
	}
	if gone {
		l.sample.Gone = now
		l.end(l.failure)
	}
}

// The steps of a start, in order. A report of one implies the earlier ones.
const (
	scheduled = 1 + iota
	sandboxed
	running
	ready
)

func (l *life) reached(step int, now int64) {
	s := &l.sample
	for i, stamp := range []*int64{&s.Scheduled, &s.Sandbox, &s.Running, &s.Ready} {
		if i < step && *stamp == 0 {
			*stamp = now
		}
	}
}

func (l *life) starts(p *corev1.Pod, gone bool, now int64) {
	c, step := kube.Container(p, container), 0
	for _, known := range p.Status.Conditions {
		if known.Status != corev1.ConditionTrue {
			continue
		}
		step = max(step, map[corev1.PodConditionType]int{
			corev1.PodScheduled: scheduled, corev1.PodReadyToStartContainers: sandboxed, corev1.PodReady: ready,
		}[known.Type])
	}
	if c.State.Running != nil {
		step = max(step, running)
	}
	l.reached(step, now)
	if f := ended(p, &c, gone); f != nil {
		l.end(f)
		return
	}
	if why := waits(p, &c); why != "" {
		l.why = why
	}
	if step == ready {
		l.sample.Told = times(p, &c)
		l.end(nil)
	}
}

// event records an event of a scheduler or a kubelet.
func (l *life) event(e *corev1.Event, now int64) {
	if e.Type == corev1.EventTypeWarning {
		l.why = said(e.Reason, e.Message)
	}
	l.reached(map[string]int{"Scheduled": scheduled, "Pulled": sandboxed, "Created": sandboxed, "Started": running}[e.Reason], now)
}

// times returns the times in a pod's status, by the clocks of their writers.
func times(p *corev1.Pod, c *corev1.ContainerStatus) map[string]int64 {
	reported := map[string]int64{"created": p.CreationTimestamp.UnixNano()}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if c := kube.Condition(p, kind); c.Status == corev1.ConditionTrue {
			reported[string(kind)] = c.LastTransitionTime.UnixNano()
		}
	}
	if c.State.Running != nil {
		reported["startedAt"] = c.State.Running.StartedAt.UnixNano()
	}
	maps.DeleteFunc(reported, func(_ string, at int64) bool { return at <= 0 }) // missing
	return reported
}

// said joins a reason and a message on one line, shortened.
func said(reason, message string) string {
	const most = 700
	text := strings.Join(strings.Fields(reason+": "+message), " ")
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}
