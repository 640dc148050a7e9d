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

// follower is told of everything that happens to a run's pods, and of the events about
// them. It keeps nothing but what is under way, however much is told.
type follower struct {
	*kube.Client
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	lives map[string]*life // by the pod's name
}

// life is one operation on one pod, and what was told of it meanwhile.
type life struct {
	op      subject.Op
	sample  record.Sample // its stamps
	deaf    time.Duration // how long tare had not been told anything when it learnt something by asking
	why     string        // the last that anybody said against it
	failure *record.Failure
	over    chan struct{} // closed when it is done, or has failed
	ended   bool          // likewise
}

// stream is a list and the watch that goes on from it.
type stream struct {
	// list takes note of what there is, of which tare was not told for so long, and
	// returns from where to watch.
	list  func(ctx context.Context, deaf time.Duration) (version string, err error)
	watch func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	o     metav1.ListOptions
}

// follow begins to be told. The error is that of the first attempt, which names what is
// not allowed.
func follow(ctx context.Context, c *kube.Client, runID string) (*follower, error) {
	f := &follower{Client: c, lives: map[string]*life{}}
	pods, events := c.Pods(c.Namespace), c.Events(c.Namespace)
	own := metav1.ListOptions{LabelSelector: engine.RunLabel + "=" + runID}
	about := metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod"}
	streams := []stream{
		{o: own, watch: pods.Watch, list: func(ctx context.Context, deaf time.Duration) (string, error) {
			asked := machine.Now()
			list, err := pods.List(ctx, own)
			if err != nil {
				return "", kube.Explain(err, "list the pods of the namespace "+c.Namespace)
			}
			f.all(list.Items, asked, deaf)
			return list.ResourceVersion, nil
		}},
		// Events bear no labels: those of others pass by. What there was before is of no
		// interest, nor what is missed, since the status of the pods has it too.
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

func (f *follower) begin(ctx context.Context, s *stream, deaf time.Duration) (watch.Interface, error) {
	listing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := s.o
	var err error
	if o.ResourceVersion, err = s.list(listing, deaf); err != nil {
		return nil, err
	}
	w, err := s.watch(ctx, o)
	return w, kube.Explain(err, "watch the pods and events of the namespace "+f.Namespace)
}

// again is how long after a watch could not be begun it is tried again, at first: an
// API server that is started anew is soon found to be there.
const again = 50 * time.Millisecond

// keep goes on being told. A watch ends whenever the server wants it to: after some
// time, when it is started anew, and with 410 Gone when it has forgotten from where to
// go on. Then it is asked what there is, and watched from there.
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
		for ended, pause := time.Now(), again; ; pause = min(2*pause, time.Second) {
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
			l.told(o, e.Type == watch.Deleted, now)
		}
	case *corev1.Event:
		if l := f.lives[o.InvolvedObject.Name]; l != nil && !l.ended && l.op == subject.Run && e.Type != watch.Deleted {
			l.event(o, now)
		}
	}
}

// all takes note of all pods that there were when that was asked, or since, after a time in
// which tare was told nothing.
func (f *follower) all(pods []corev1.Pod, asked int64, deaf time.Duration) {
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
			l.told(&pods[i], false, now)
		case l.op == subject.Remove || l.sample.Returned != 0 && l.sample.Returned < asked: // else it is still to come
			l.told(&corev1.Pod{}, true, now)
		}
		if l.stamped() != before {
			l.deaf = max(l.deaf, deaf)
		}
	}
}

// expect begins an operation on a pod.
func (f *follower) expect(op subject.Op, name string) *life {
	l := &life{op: op, over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives[name] = l
	return l
}

// forget ends it, and returns what became of it, the zero life if nothing is known.
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

// await waits until an operation is over. A stamp that was not told in time, since
// nothing was told for longer than a share of it, is not known.
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
	case l.deaf > time.Since(began)/share:
		return &batch.Refusal{Failure: record.Failure{Kind: record.FailError,
			Detail: fmt.Sprintf("the watch was interrupted for %v meanwhile: that it is done is known, and not when it was", l.deaf.Round(time.Millisecond))}}
	}
	return nil
}

// stamped is how many stamps there are.
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

// told takes note of a pod as it is now.
func (l *life) told(p *corev1.Pod, gone bool, now int64) {
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

// The steps of a start. Whoever tells of one tells of those before, too.
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

// event takes note of what a scheduler or a kubelet says of a pod.
func (l *life) event(e *corev1.Event, now int64) {
	if e.Type == corev1.EventTypeWarning {
		l.why = said(e.Reason, e.Message)
	}
	l.reached(map[string]int{"Scheduled": scheduled, "Pulled": sandboxed, "Created": sandboxed, "Started": running}[e.Reason], now)
}

// times are those that a pod bears, by the clocks of whoever wrote them.
func times(p *corev1.Pod, c *corev1.ContainerStatus) map[string]int64 {
	told := map[string]int64{"created": p.CreationTimestamp.UnixNano()}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if c := kube.Condition(p, kind); c.Status == corev1.ConditionTrue {
			told[string(kind)] = c.LastTransitionTime.UnixNano()
		}
	}
	if c.State.Running != nil {
		told["startedAt"] = c.State.Running.StartedAt.UnixNano()
	}
	maps.DeleteFunc(told, func(_ string, at int64) bool { return at <= 0 }) // it was not said
	return told
}

// said is what somebody says in a word and a text, on one line that is not too long.
func said(reason, message string) string {
	const most = 700
	text := strings.Join(strings.Fields(reason+": "+message), " ")
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}
