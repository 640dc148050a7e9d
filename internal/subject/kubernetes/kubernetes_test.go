package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestPodIsStampedUntilReadyAndUntilGone(t *testing.T) {
	t.Parallel()
	s := script(t)
	session := s.opened(time.Minute)
	run := one(t, session, subject.Run)
	must.That(t, run.Failure == nil, "%+v", run.Failure)
	last := run.Start
	for _, stamp := range []record.Stamp{record.StampScheduled, record.StampSandbox, record.StampRunning, record.StampReady} {
		at, ok := run.Time(stamp)
		check.That(t, ok && at >= last, "%s at %d, after %d", stamp, at, last)
		last = at
	}
	check.That(t, run.Returned > run.Start && run.First == 0 && run.Guest == 4711 && len(run.Told) == 5,
		"%+v: want a reply, the remote clock as guest time, and five times from the pod", run)
	rm := one(t, session, subject.Remove)
	check.That(t, rm.Failure == nil && rm.Gone >= rm.Start && rm.Returned >= rm.Start, "%+v, %+v", rm, rm.Failure)
}

func TestFailureHasItsCause(t *testing.T) {
	t.Parallel()
	stuck := func(change ...func(*corev1.Pod)) func(*scripted, *corev1.Pod) {
		return func(s *scripted, p *corev1.Pod) {
			for _, c := range change {
				c(p)
			}
			s.update(p)
		}
	}
	waits := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	for name, c := range map[string]struct {
		kubelet func(*scripted, *corev1.Pod)
		refused error
		kind    string
		want    []string
	}{
		"exceeded quota": {refused: refusal("exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5"),
			kind: record.FailError, want: []string{"exceeded quota: small", "a larger ResourceQuota"}},
		"refused by admission": {refused: refusal(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`),
			kind: record.FailError, want: []string{"violates PodSecurity", "admission controller"}},
		"missing permission": {refused: denied("create", "pods"), kind: record.FailTimeout, want: []string{"cannot create resource", `"pods"`, space}},
		"missing image": {kubelet: stuck(waits(imageAbsent, `Container image "probe:1" is not present with pull policy of Never`)),
			kind: record.FailError, want: []string{imageAbsent, "--image"}},
		"unschedulable": {kubelet: stuck(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Too many pods."}}
		}), kind: record.FailTimeout, want: []string{"Unschedulable", "Too many pods"}},
		"node not ready": {kubelet: func(s *scripted, p *corev1.Pod) {
			s.silence()
			p.Spec.NodeName = "n1"
			stuck(is(corev1.PodScheduled))(s, p)
		}, kind: record.FailTimeout, want: []string{"the node n1 is not ready", "Kubelet stopped posting"}},
		"evicted from a node that is not ready": {kubelet: func(s *scripted, p *corev1.Pod) {
			s.silence()
			p.Spec.NodeName, p.DeletionTimestamp = "n1", new(metav1.Now())
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint"}}
			s.update(p)
		}, kind: record.FailState, want: []string{"the node n1 is not ready: NodeStatusUnknown Kubelet stopped posting", "DeletionByTaintManager"}},
		"failed sandbox": {kubelet: func(s *scripted, p *corev1.Pod) {
			stuck(is(corev1.PodScheduled))(s, p)
			_ = s.Tracker.Create(corev1.SchemeGroupVersion.WithResource("events"), &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: p.Name + ".1", Namespace: space},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: p.Name}, Type: corev1.EventTypeWarning,
				Reason: "FailedCreatePodSandBox", Message: `no runtime for "crun" is configured`}, space)
		}, kind: record.FailTimeout, want: []string{"FailedCreatePodSandBox", "no runtime for"}},
		"evicted": {kubelet: stuck(is(corev1.PodScheduled), func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}), kind: record.FailState, want: []string{"Evicted", "low on resource"}},
		"deleted by another user": {kubelet: func(s *scripted, p *corev1.Pod) {
			_ = s.Tracker.Delete(podsOf, space, p.Name)
		}, kind: record.FailState, want: []string{"deleted before it was ready"}},
		"workload ends": {kubelet: stuck(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "exec format error"}}}}
		}), kind: record.FailWorkload, want: []string{"status 128", "exec format error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t)
			timeout := time.Minute
			if c.kind == record.FailTimeout { // a timeout has the last reported obstacle
				timeout = 2 * time.Second
			}
			session := s.opened(timeout)
			if c.refused != nil {
				s.refuse("create", "pods", always, c.refused)
			} else {
				s.does(c.kubelet)
			}
			f := one(t, session, subject.Run).Failure
			must.That(t, f != nil && f.Kind == c.kind, "%+v, want kind %s", f, c.kind)
			check.Contains(t, "failure", f.Detail, c.want...)
			must.OK(t, session.Discard(t.Context(), []int{0}))
		})
	}
}

func TestFailureNamesTheNodeOfAPodDeletedByForce(t *testing.T) {
	t.Parallel()
	s := script(t)
	target := must.Get(s.target(subject.Engine{Image: "probe:1", Node: "n1"}))(t)
	s.silence()
	for _, why := range []error{context.DeadlineExceeded, &batch.Refusal{Failure: record.Failure{Kind: record.FailState, Detail: "the pod was deleted"}}} {
		got := (&driver{Target: target}).because("gone", time.Minute, why)
		check.That(t, strings.Contains(got.Error(), "the node n1 is not ready: NodeStatusUnknown Kubelet stopped posting"), "of %v: %v", why, got)
	}
}

func TestMissingPermissionsFailTheOpening(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ verb, what string }{{"list", "pods"}, {"watch", "pods"}, {"list", "events"}, {"watch", "events"}, {"create", "pods"}} {
		t.Run(c.verb+" "+c.what, func(t *testing.T) {
			t.Parallel()
			s := script(t)
			if c.verb == "watch" {
				s.PrependWatchReactor(c.what, func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, denied(c.verb, c.what) })
			} else {
				s.refuse(c.verb, c.what, always, denied(c.verb, c.what))
			}
			_, err := s.open(1, time.Minute)
			check.Error(t, err, fmt.Sprintf("cannot %s resource %q", c.verb, c.what))
		})
	}
}

func TestRequestsAreRetriedWhileTheAPIServerRestarts(t *testing.T) {
	t.Parallel()
	s := script(t)
	session := s.opened(time.Minute)
	refused := &url.Error{Op: "Post", URL: "https://fake", Err: syscall.ECONNREFUSED}
	s.refuse("create", "pods", 3, refused)
	f := one(t, session, subject.Run).Failure
	check.That(t, f == nil, "%+v", f)
	s.refuse("delete", "pods", 2, apierrors.NewServiceUnavailable("apiserver is shutting down"))
	f = one(t, session, subject.Remove).Failure
	check.That(t, f == nil, "%+v", f)
}

func TestFailureIncludesTheEndOfThePodLog(t *testing.T) {
	t.Parallel()
	s := script(t)
	var asked atomic.Int64
	s.PrependReactor("get", "pods/log", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		return true, &runtime.Unknown{Raw: []byte(strings.Repeat(strings.Repeat("x", 16<<10)+"\n", int(lastLines)) + "no such device")}, nil
	})
	session := s.opened(time.Minute)
	before := asked.Load()
	s.does(func(s *scripted, p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		s.update(p)
	})
	armed := must.Get(session.Prepare(t.Context(), subject.Run, []int{0}))(t)
	within := int64(-1)
	_, samples, err := subject.StartBetween(t.Context(), armed, func() {}, func() { within = asked.Load() - before })
	must.That(t, err == nil && len(samples) == 1 && samples[0].Failure != nil, "%v, %+v", err, samples)
	out := samples[0].Failure.Output
	check.That(t, len(out) <= 4<<10 && strings.HasSuffix(out, "x\nno such device"), "kept %d bytes, ending in %q", len(out), out[max(0, len(out)-20):])
	check.Equal(t, "log reads during the timed part", within, 0)
	must.OK(t, session.Discard(t.Context(), []int{0}))
}

// TestEndedWatchIsRenewed ends the first watch of pods while a pod becomes ready.
func TestEndedWatchIsRenewed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away int64 // list requests that fail before one succeeds
		want string
	}{
		"410 Gone":             {},
		"too late for a stamp": {6, "done at an unknown time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t)
			own := watch.NewRaceFreeFake()
			var first sync.Once
			s.PrependWatchReactor("pods", func(clienttesting.Action) (mine bool, w watch.Interface, err error) {
				first.Do(func() { mine, w = true, own })
				return mine, w, nil
			})
			// The same watch also reports the trial pod.
			s.does(func(s *scripted, p *corev1.Pod) {
				for _, step := range []func(*corev1.Pod){is(corev1.PodScheduled), runs, is(corev1.PodReady)} {
					step(p)
				}
				s.update(p)
				own.Modify(p.DeepCopy())
			})
			session := s.opened(time.Minute)
			s.does(func(s *scripted, p *corev1.Pod) {
				works(s, p)
				if c.away > 0 {
					s.refuse("list", "pods", c.away, errors.New("connection refused"))
				}
				own.Error(&apierrors.NewResourceExpired("too old resource version").ErrStatus)
			})
			f := one(t, session, subject.Run).Failure
			check.That(t, (f != nil) == (c.want != "") && (f == nil || strings.Contains(f.Detail, c.want)), "%+v, want %q", f, c.want)
		})
	}
}

// TestPodNewerThanAListIsNotDeleted imitates a restarted API server. It answers a list
// request while it creates a pod.
func TestPodNewerThanAListIsNotDeleted(t *testing.T) {
	t.Parallel()
	f := &follower{lives: map[string]*life{}}
	for name, c := range map[string]struct {
		returned int64 // time at which the creation returned; 0 if it has not
		deleted  bool
	}{
		"before the list": {1, true},
		"during the list": {3, false},
		"later":           {0, false},
	} {
		l := f.expect(subject.Run, name)
		l.sample.Returned = c.returned
		f.all(nil, 2, 0)
		check.Equal(t, name, f.forget(name).failure != nil, c.deleted)
	}
}

func TestForeignEventsAreIgnored(t *testing.T) {
	f := &follower{lives: map[string]*life{}}
	e := watch.Event{Type: watch.Added, Object: &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "other"}, Reason: "Started"}}
	n := testing.AllocsPerRun(10_000, func() { f.note(e) })
	check.That(t, n == 0 && len(f.lives) == 0, "%v allocations per event, %d pods kept", n, len(f.lives))
}

func TestFirstReportCounts(t *testing.T) {
	t.Parallel()
	f := &follower{lives: map[string]*life{}}
	l := f.expect(subject.Run, "p")
	event := func(reason string) {
		f.note(watch.Event{Type: watch.Added, Object: &corev1.Event{InvolvedObject: corev1.ObjectReference{Name: "p"}, Reason: reason}})
	}
	status := func(steps ...func(*corev1.Pod)) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		for _, step := range steps {
			step(p)
		}
		f.note(watch.Event{Type: watch.Modified, Object: p})
	}
	event("Started") // the event of the scheduler may come later
	s := l.sample
	check.That(t, s.Scheduled != 0 && s.Scheduled == s.Running && s.Sandbox == s.Running && s.Ready == 0, "%+v", s)
	event("Scheduled")
	skewed := metav1.NewTime(time.Now().Add(-5 * time.Second)) // the clock of a node may be behind
	status(is(corev1.PodScheduled), runs, func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: skewed})
	})
	check.That(t, l.sample.Running == s.Running && l.sample.Ready > s.Running && l.ended && l.failure == nil, "%+v, was %+v", l.sample, s)
	check.Equal(t, "time of Ready", l.sample.Told["Ready"], skewed.UnixNano())
}

func TestOversizedBatchIsRefused(t *testing.T) {
	t.Parallel()
	there := other()
	there.Spec.NodeName = "n1"
	s := script(t, there) // the fake ignores field selectors, so the pod counts on each node
	_, err := s.open(9, time.Minute)
	check.That(t, err != nil && strings.Contains(err.Error(), "9 pods at once do not fit") && strings.Contains(err.Error(), "room for 8 more"), "%v", err)
}

func TestOnlySchedulableNodesAreSelected(t *testing.T) {
	t.Parallel()
	down, tainted := node("down"), node("tainted")
	down.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized"}
	tainted.Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		e     subject.Engine
		nodes string
		want  string // part of the error
	}{
		"all schedulable nodes":  {e: subject.Engine{Image: "i"}, nodes: "n1 n2"},
		"named node":             {e: subject.Engine{Image: "i", Node: "n2"}, nodes: "n2"},
		"node that is not ready": {e: subject.Engine{Image: "i", Node: "down"}, want: "down is not ready: KubeletNotReady cni plugin"},
		"tainted node":           {e: subject.Engine{Image: "i", Node: "tainted"}, want: "tainted has the taint own:NoSchedule"},
		"missing node":           {e: subject.Engine{Image: "i", Node: "n9"}, want: `no node "n9"`},
		"no image":               {want: "tare pulls no image"},
		"no network":             {e: subject.Engine{Image: "i", Network: subject.NetworkNone}, want: "always has the cluster's network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, down, tainted).target(c.e)
			if c.want != "" {
				u := (*subject.Unavailable)(nil)
				check.That(t, errors.As(err, &u) && strings.Contains(u.Reason, c.want), "%v, want %q", err, c.want)
				return
			}
			check.That(t, err == nil && strings.Join(namesOf(got.nodes), " ") == c.nodes, "%v, %v", got, err)
		})
	}
}

func TestManifestHasTheSettingsOfTheRun(t *testing.T) {
	t.Parallel()
	target := must.Get(script(t).target(subject.Engine{Image: "i", Node: "n2", Network: subject.NetworkHost}))(t)
	d := &driver{Target: target, ref: "i", env: subject.Env{RunID: "r1", Limits: subject.Limits{Memory: 64 << 20, CPU: 0.25}}}
	p := d.pod("tare-r1-0-1", engine.Place{})
	c := p.Spec.Containers[0]
	if p.Labels[engine.RunLabel] != "r1" || p.Labels[kube.ManagedBy] != "tare" || p.Namespace != space || *p.Spec.RuntimeClassName != "crun" || !p.Spec.HostNetwork ||
		*p.Spec.AutomountServiceAccountToken || p.Spec.RestartPolicy != corev1.RestartPolicyNever || p.Spec.Tolerations != nil || c.ImagePullPolicy != corev1.PullNever ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] != "n2" {
		t.Errorf("%+v", p)
	}
	check.That(t, c.ReadinessProbe == nil && p.Spec.Volumes == nil, "%+v", p.Spec)
	check.That(t, c.Resources.Limits.Memory().Equal(resource.MustParse("64Mi")) &&
		c.Resources.Limits.Cpu().Equal(resource.MustParse("250m")) && c.Resources.Requests.Cpu().MilliValue() == 1, "%+v", c.Resources)
}

// The kubelet must not expand the words of a user's program. The pod has the mounts and the
// readiness probe of the program.
func TestManifestOfAUsersProgram(t *testing.T) {
	t.Parallel()
	target := must.Get(script(t).target(subject.Engine{Image: "i"}))(t)
	own := &cargo.Cargo{Process: cargo.Process{Args: []string{"sh", "-c", "echo $(HOME) $$(HOME) $$"}}, Mounts: []setting.Mount{"/srv/data:/data:ro", "/srv/more:/more"}}
	d := &driver{Target: target, ref: "i", env: subject.Env{RunID: "r1", Workload: subject.Workload{Cargo: own}}}
	d.readiness = must.Get(readiness("http:8080/healthz=204"))(t)
	p := d.pod("tare-r1-0-1", engine.Place{})
	c := p.Spec.Containers[0]
	check.Equal(t, c.Args, expand(c.Args), append([]string{"tare-r1-0-1"}, own.Args...))
	check.That(t, len(p.Spec.Volumes) == 2 && p.Spec.Volumes[0].HostPath.Path == "/srv/data" && c.VolumeMounts[0].MountPath == "/data" &&
		c.VolumeMounts[0].ReadOnly && !c.VolumeMounts[1].ReadOnly, "%+v, %+v", p.Spec.Volumes, c.VolumeMounts)
	a := c.ReadinessProbe
	check.That(t, a != nil && a.HTTPGet != nil && a.HTTPGet.Path == "/healthz" && a.HTTPGet.Port.IntValue() == 8080 && a.PeriodSeconds == 1, "%+v", a)
	for asked, can := range map[setting.Ready]bool{"tcp:80": true, "exec:/bin/true $(HOME)": true, "http:80/=302": true, "http:80/=404": false, "log:x": false, "file:/x": false} {
		_, err := readiness(asked)
		check.That(t, (err == nil) == can && (err == nil || errors.Is(err, subject.ErrUnsupported)), "%s: %v", asked, err)
	}
	why := target.Refuses(&setting.Workload{Image: "x"})
	check.That(t, why != nil && strings.Contains(why.Reason, "its nodes use the image i"), "%v", why)
}

// expand expands a command like a kubelet. $(NAME) is the value of a variable, and $$ is $.
func expand(words []string) (out []string) {
	for _, word := range words {
		word = regexp.MustCompile(`\$\$|\$\(\w+\)`).ReplaceAllStringFunc(word, func(found string) string {
			if found == "$$" {
				return "$"
			}
			return "EXPANDED"
		})
		out = append(out, word)
	}
	return out
}

func TestCleanRemovesOnlyPodsOfTheRun(t *testing.T) {
	t.Parallel()
	left := other()
	left.Name, left.Labels = "tare-r1-0-1", map[string]string{engine.RunLabel: "r1", kube.ManagedBy: "tare"}
	foreign := other() // has the label, but another name
	foreign.Name, foreign.Labels = "database", left.Labels
	s := script(t, left, other(), foreign)
	target := must.Get(s.target(subject.Engine{Image: "i"}))(t)
	for _, dry := range []bool{true, false} {
		check.Equal(t, dry, must.Get(target.Clean(t.Context(), "r1", dry))(t), []string{"pod tare-r1-0-1"})
		check.Equal(t, fmt.Sprint("pods after a clean with dry run ", dry), len(s.pods()), map[bool]int{true: 3, false: 2}[dry])
	}
}

func TestMissingClusterIsUnavailable(t *testing.T) {
	t.Parallel()
	s := script(t)
	s.refuse("list", "nodes", always, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(`User "tare" cannot list resource "nodes" in API group "" at the cluster scope`)))
	_, forbidden := s.target(subject.Engine{Image: "i"})
	_, nowhere := Runtimes(t.Context(), subject.Engine{Kubeconfig: t.TempDir() + "/none"})
	for want, err := range map[string]error{"cannot list resource": forbidden, "none": nowhere} {
		u := (*subject.Unavailable)(nil)
		check.That(t, errors.As(err, &u) && strings.Contains(u.Reason, want), "%v, want %q", err, want)
	}
}
