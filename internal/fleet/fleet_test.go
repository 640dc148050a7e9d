package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/exec"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/kubetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// sent is the content of the record of every node.
var sent = bytes.Repeat([]byte("a line of a record\n"), 1000)

// fate is the scripted behaviour of one node.
type fate struct {
	node   func(*corev1.Node)
	job    func(*batchv1.Job)
	refuse error                                         // of creating the Job
	pod    func(p *corev1.Pod)                           // nil: the Job gets no pod
	exec   func(call int, from int64, w io.Writer) error // exec call that reads the record
	says   string                                        // part of the expected error; "": none
	record bool
}

func conditions(of corev1.PodConditionType, is corev1.ConditionStatus, reason, message string) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: of, Status: is, Reason: reason, Message: message}}
}

// done returns a change of a pod: its plan has ended with an exit code.
func done(code int32) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: keeperName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: runnerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "one\ntare: \x1b[2Jit cannot be"}}},
		}
	}
}

// send writes the record from an offset, as tare in the pod does. It writes at most the
// given number of bytes.
func send(w io.Writer, from int64, most int) error {
	path := filepath.Join(os.TempDir(), "sent-"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(path, sent, 0o600); err != nil {
		return err
	}
	var all bytes.Buffer
	if err := Send(&all, path, from); err != nil {
		return err
	}
	_, _ = w.Write(all.Bytes()[:min(most, all.Len())])
	if most < all.Len() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

var fates = map[string]fate{
	"successful":        {pod: done(0), record: true},
	"failed-operations": {pod: done(2), record: true, says: "operations failed; its record lists them"},
	"no-record": {pod: done(1), says: `exited with status 1, Error: tare: \x1b[2Jit cannot be` + "\nfetch its record: no record was made",
		exec: func(_ int, _ int64, _ io.Writer) error {
			return exec.CodeExitError{Err: errors.New("1"), Code: 1}
		}},
	"interrupted": {pod: done(0), record: true, exec: func(_ int, from int64, w io.Writer) error { return send(w, from, 5000) }},
	"often-interrupted": {pod: done(0), record: true, exec: func(call int, from int64, w io.Writer) error {
		if call%3 > 0 { // nothing, or half of the header
			return send(w, from, call%3*10-10)
		}
		return send(w, from, 12000)
	}},
	"transfer-fails": {pod: done(0), says: "it broke off after 0 bytes", exec: func(int, int64, io.Writer) error { return io.ErrUnexpectedEOF }},
	"changing": {pod: done(0), says: "it changed during the transfer", exec: func(call int, from int64, w io.Writer) error {
		fmt.Fprintf(w, `{"size":%d,"sha256":"00"}`+"\nx", 5+call)
		return io.ErrUnexpectedEOF
	}},
	"oversized": {pod: done(0), says: "more than its announced size", exec: func(_ int, _ int64, w io.Writer) error {
		_, err := io.WriteString(w, `{"size":1,"sha256":"00"}`+"\nxx")
		return err
	}},
	"mute":      {pod: done(0), says: "no data received for 5m0s, after 0 bytes"},
	"malformed": {pod: done(0), says: "does not start with", exec: func(_ int, _ int64, w io.Writer) error { _, err := w.Write(make([]byte, 5000)); return err }},
	"bit-flipped": {pod: done(0), says: "checksum mismatch: 2d71", exec: func(_ int, _ int64, w io.Writer) error {
		_, err := io.WriteString(w, `{"size":1,"sha256":"00"}`+"\nx")
		return err
	}},
	"drained": {says: "evicted: EvictionByEvictionAPI: Eviction API: evicting", pod: func(p *corev1.Pod) {
		p.Status.Conditions = conditions(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")
	}},
	"dead-and-evicted": {says: "evicted: DeletionByTaintManager: Taint manager: deleting; the node is not ready: NodeStatusUnknown: silent", node: func(n *corev1.Node) {
		n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "silent"}
	}, pod: func(p *corev1.Pod) {
		p.Status.Conditions = conditions(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "Taint manager: deleting")
	}},
	"cordoned": {says: "the node is cordoned; its pod is not scheduled: Unschedulable: 0/2 nodes are available: 1 node(s)", node: func(n *corev1.Node) { n.Spec.Unschedulable = true },
		pod: func(p *corev1.Pod) {
			p.Status.Conditions = conditions(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/2 nodes are available: 1 node(s) were unschedulable.")
		}},
	"missing-image": {says: "its container is waiting: ImagePullBackOff: localhost/tare:x", pod: func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: keeperName, Image: "localhost/tare:x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	}},
	"dead": {says: "the node is not ready: NodeStatusUnknown: Kubelet stopped posting node status.", node: func(n *corev1.Node) {
		n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}
	}, pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }},
	"kwok": {says: "its pod ended (Succeeded), so its record is lost", pod: func(p *corev1.Pod) {
		done(0)(p)
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}},
	"deadline-exceeded": {says: "its Job failed: DeadlineExceeded: Job was active longer", job: func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer"}}
	}},
	"quota-exceeded": {says: `its Job has no pod: FailedCreate: pods "x" is forbidden: exceeded quota`},
	"not-admitted":   {says: "create its Job: jobs.batch \"x\" is forbidden: webhook says no", refuse: apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("webhook says no"))},
	"silent-a-while": {pod: done(0), record: true},
}

// world returns a fake cluster with one node per fate, and a fleet for it.
func world(t *testing.T, all map[string]fate) (*Fleet, *kubetest.Cluster) {
	t.Helper()
	c := must.Get(kubetest.New())(t)
	c.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		r.Status.Allowed = true
		return true, r, nil
	})
	silent := 0
	f := &Fleet{
		Spec:   Spec{RunID: "abcdefgh", Namespace: "default", Image: "localhost/tare:x", PlanName: "p.yaml", Deadline: time.Hour},
		Client: &kube.Client{API: c.API(), Namespace: "default"}, Parallel: len(all), Dir: t.TempDir(),
		Say: func(string) {}, Progress: func(string) {},
	}
	for name, fate := range all {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		if fate.node != nil {
			fate.node(n)
		}
		add(t, c, n)
	}
	c.PrependReactor("create", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
		j := a.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		fate := all[nodeOf(j)]
		if fate.refuse != nil {
			return true, nil, fate.refuse
		}
		if fate.job != nil {
			fate.job(j)
		}
		if fate.pod != nil {
			p := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy()}
			p.Name, p.Namespace, p.Labels[batchv1.JobNameLabel] = j.Name+"-x", "default", j.Name
			fate.pod(p)
			add(t, c, p)
		} else {
			add(t, c, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: "default"}, Type: "Warning", Reason: "FailedCreate",
				Message: `pods "x" is forbidden: exceeded quota`, InvolvedObject: corev1.ObjectReference{Name: j.Name}})
		}
		add(t, c, j)
		return true, j, nil
	})
	c.PrependReactor("delete", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) { // like garbage collection
		_ = c.Tracker.Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", a.(clienttesting.DeleteAction).GetName()+"-x")
		return false, nil, nil
	})
	c.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(a.(clienttesting.ListAction).GetListRestrictions().Labels.String(), "silent-a-while") && silent < 100 {
			silent++
			return true, nil, &url.Error{Op: "Get", URL: "https://x", Err: syscall.ECONNREFUSED}
		}
		return false, nil, nil
	})
	var mu sync.Mutex
	calls := map[string]int{}
	f.exec = func(ctx context.Context, pod, container string, command []string, stdout, stderr io.Writer) error {
		if strings.HasSuffix(pod, "-mute-x") {
			<-ctx.Done()
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		calls[pod]++
		from, err := strconv.ParseInt(command[len(command)-1], 10, 64)
		if container != keeperName || err != nil {
			return fmt.Errorf("exec %q in %s", command, container)
		}
		for name, fate := range all {
			switch {
			case pod != jobName(f.RunID, name)+"-x":
			case fate.exec == nil:
				return send(stdout, from, 1<<30)
			default:
				err := fate.exec(calls[pod], from, stdout)
				if errors.As(err, new(exec.CodeExitError)) {
					fmt.Fprintln(stderr, "no record was made")
				}
				return err
			}
		}
		return errors.New("no such pod")
	}
	return f, c
}

func nodeOf(j *batchv1.Job) string {
	return j.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

func add(t *testing.T, c *kubetest.Cluster, o runtime.Object) {
	t.Helper()
	check.Error(t, c.Tracker.Add(o), "")
}

// left lists all objects that have the label of a run.
func left(t *testing.T, c *kubetest.Cluster) (all []string) {
	t.Helper()
	list := metav1.ListOptions{LabelSelector: engine.RunLabel}
	ctx := context.Background()
	jobs, _ := c.API().Jobs("").List(ctx, list)
	for _, o := range jobs.Items {
		all = append(all, "job "+o.Name)
	}
	pods, _ := c.API().Pods("").List(ctx, list)
	for _, o := range pods.Items {
		all = append(all, "pod "+o.Name)
	}
	plans, _ := c.API().ConfigMaps("").List(ctx, list)
	for _, o := range plans.Items {
		all = append(all, "configmap "+o.Name)
	}
	leases, _ := c.API().Leases("").List(ctx, list)
	for _, o := range leases.Items {
		all = append(all, "lease "+o.Name)
	}
	return all
}

func TestNodeFailuresAreReportedAndOthersFinish(t *testing.T) {
	t.Cleanup(func() { os.Remove(filepath.Join(os.TempDir(), "sent-"+strconv.Itoa(os.Getpid()))) })
	synctest.Test(t, func(t *testing.T) {
		f, c := world(t, fates)
		var nodes []string
		for name := range fates {
			nodes = append(nodes, name)
		}
		results, err := f.Run(t.Context(), nodes)
		must.That(t, err == nil && len(results) == len(fates), "%d results, %v", len(results), err)
		for _, r := range results {
			fate := fates[r.Node]
			switch {
			case r.Err == nil && fate.says != "", r.Err != nil && fate.says == "", r.Err != nil && !strings.Contains(r.Err.Error(), fate.says):
				t.Errorf("%s: %v", r.Node, r.Err)
			case (r.Path != "") != fate.record:
				t.Errorf("%s: record: %q", r.Node, r.Path)
			case fate.record:
				got, err := os.ReadFile(filepath.Join(f.Dir, r.Node+".jsonl"))
				check.That(t, err == nil && bytes.Equal(got, sent), "%s: got %d bytes of %d, %v", r.Node, len(got), len(sent), err)
			}
		}
		parts, _ := filepath.Glob(filepath.Join(f.Dir, "*.part"))
		check.That(t, len(parts) == 0 && len(left(t, c)) == 0, "not removed: %v, %v", parts, left(t, c))
	})
}

func TestInterruptedRunRemovesItsObjectsAndStartsNoNode(t *testing.T) {
	running := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = conditions(corev1.PodReady, corev1.ConditionTrue, "", "")
	}
	for name, stuck := range map[string]bool{"all objects are removed": false, "a pod on a dead node stays": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := world(t, map[string]fate{"a": {pod: running}, "b": {pod: running}})
				f.Parallel = 1
				if stuck {
					c.PrependReactor("delete", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, c.Tracker.Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), "default", a.(clienttesting.DeleteAction).GetName())
					})
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				results, err := f.Run(ctx, []string{"a", "b"})
				check.That(t, len(results) == 2 && errors.Is(results[0].Err, errInterrupted) && errors.Is(results[1].Err, errNotBegun), "%v", results)
				want := []string(nil)
				if stuck {
					want = []string{"pod tare-abcdefgh-a-x", "lease tare-abcdefgh"}
				}
				check.Equal(t, "remaining objects", left(t, c), want)
				check.That(t, (err != nil) == stuck && (!stuck || strings.Contains(err.Error(), "tare clean --kube removes it later")), "%v", err)
			})
		})
	}
}

func TestMissingPermissionsAreListedBeforeAnyObjectIsCreated(t *testing.T) {
	f, c := world(t, nil)
	c.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		to := r.Spec.ResourceAttributes
		r.Status.Allowed = to.Subresource != "exec" && (to.Resource != "jobs" || to.Verb != "delete") && (to.Resource != "nodes" || to.Namespace == "")
		return true, r, nil
	})
	_, err := f.Run(t.Context(), []string{"a"})
	check.Error(t, err, ": delete jobs.batch, get pods/exec, create pods/exec;")
	got := left(t, c)
	check.That(t, got == nil, "created objects: %q", got)
}

func TestOnlyObjectsOfDeadRunsAreLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := world(t, nil)
		client := f.Client
		owner := []metav1.OwnerReference{{Kind: "CronJob", Name: "theirs"}}
		leave := func(id string, owners []metav1.OwnerReference, labels map[string]string) {
			meta := metav1.ObjectMeta{Name: "tare-" + id + "-a", Namespace: "default", Labels: labels, OwnerReferences: owners}
			add(t, c, &batchv1.Job{ObjectMeta: meta})
			meta.OwnerReferences = append(owners, metav1.OwnerReference{Kind: "Job", Name: meta.Name})
			meta.Name += "-x"
			add(t, c, &corev1.Pod{ObjectMeta: meta})
			add(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tare-" + id, Namespace: "default", Labels: labels, OwnerReferences: owners}})
		}
		lives := must.Get(kube.Hold(t.Context(), client, "default", "lives"))(t)
		leave("lives", nil, kube.Labels("lives"))
		dead := must.Get(kube.Hold(t.Context(), client, "default", "dead"))(t)
		must.OK(t, dead.Release(t.Context(), true))
		leave("dead", nil, kube.Labels("dead"))
		leave("theirs", owner, kube.Labels("theirs"))
		leave("applied", nil, map[string]string{engine.RunLabel: "applied"}) // applied by a user
		leave("unknown", nil, kube.Labels("unknown"))
		time.Sleep(usual.silent) // a live run may wait this long for an unresponsive API server
		all, live, err := Leftovers(t.Context(), client)
		must.That(t, err == nil && slices.Equal(live, []string{"dead", "lives"}) && len(all) == 1 && all[0].RunID == "unknown" && !all[0].Leased,
			"within the waiting time: %v, live %v, %v", all, live, err)
		time.Sleep(time.Minute)
		all, live, err = Leftovers(t.Context(), client)
		must.That(t, err == nil && slices.Equal(live, []string{"lives"}) && len(all) == 2 && all[0].Leased &&
			slices.Equal(all[0].Objects, []string{"job/tare-dead-a", "configmap/tare-dead", "lease/tare-dead"}), "a minute later: %+v, live %v, %v", all, live, err)
		must.OK(t, all[0].Remove(t.Context()))
		for _, name := range left(t, c) {
			check.Lacks(t, "remaining object", name, "dead")
		}
		got := left(t, c)
		check.That(t, len(got) == 4*3+1, "remaining objects: %q", got)
		must.OK(t, lives.Release(t.Context(), false))
	})
}

func TestWrongClockDoesNotMakeALiveRunDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := world(t, nil)
		beat := must.Get(kube.Hold(t.Context(), f.Client, "default", "abcdefgh"))(t)
		c.PrependReactor("list", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			all, err := c.Tracker.List(a.GetResource(), coordinationv1.SchemeGroupVersion.WithKind("Lease"), "default")
			for i := range all.(*coordinationv1.LeaseList).Items { // as written with a wrong clock
				renewed := all.(*coordinationv1.LeaseList).Items[i].Spec.RenewTime
				renewed.Time = renewed.Add(-10 * time.Minute)
			}
			return true, all, err
		})
		alive, err := kube.Beats(t.Context(), f.Client, "default")
		check.That(t, err == nil && alive["abcdefgh"], "%v %v", alive, err)
		_ = beat.Release(t.Context(), true)
		alive, err = kube.Beats(t.Context(), f.Client, "default")
		check.That(t, err == nil && !alive["abcdefgh"], "after the release: %v %v", alive, err)
	})
}

func TestPodLogIsBoundedInTimeAndLength(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]int{"endless": 4096, "mute": 0} {
		t.Run(name, func(t *testing.T) {
			left := make(chan bool, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for range 1024 * says / 4096 {
					_, _ = w.Write(bytes.Repeat([]byte("x"), 64<<10))
				}
				select {
				case <-r.Context().Done():
					left <- true
				case <-time.After(time.Minute):
					left <- false
				}
			}))
			defer server.Close()
			api := must.Get(kube.NewAPI(&rest.Config{Host: server.URL}))(t)
			f := &Fleet{Client: &kube.Client{API: api}, times: times{patience: 10 * time.Second}}
			if says == 0 {
				f.patience = 6 * time.Second // enough to reach the server
			}
			got := f.says(t.Context(), "p")
			check.That(t, len(got) == says && <-left, "read %d bytes, or did not close the connection", len(got))
		})
	}
}
