// Package fleet runs one plan on many nodes of a Kubernetes cluster. The pod of a Job on each
// node runs the plan like tare run and keeps the record until it is fetched. The package has
// no scheduler, agent or storage.
//
// Manifests are pure functions of a [Spec]. A [Fleet] creates them, polls each node's pod once
// a second, and fetches the records. It polls instead of watching: polls are stateless, so a
// restarted API server or an expired watch does not matter, and the Role needs one verb less.
//
// Records are fetched by exec, because kubelet rotates logs at 10 MiB and loses data. A second
// container without privileges keeps the record after the end of the first, and sends it from
// any offset. So a transfer resumes after a broken connection, and needs only the permissions,
// certificates and routes of the API server.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tare-bench/tare/internal/kube"
)

// Fleet runs a plan on nodes.
type Fleet struct {
	Spec
	Client   *kube.Client
	Parallel int    // nodes at once
	Dir      string // folder of fetched records
	// Say prints a result; Progress the state of all nodes and of one node.
	Say, Progress func(text string)

	exec func(ctx context.Context, pod, container string, command []string, stdout, stderr io.Writer) error
	times
	mu       sync.Mutex
	done, of int // nodes
}

// times are time limits.
type times struct {
	look     time.Duration // between two polls
	patience time.Duration // for temporary failures: no pod yet, an image that is not pulled, no room
	away     time.Duration // for a node that is not ready
	silent   time.Duration // for an API server that does not answer
	removal  time.Duration // for the removal of all objects
}

var usual = times{look: time.Second, patience: 15 * time.Second, away: 30 * time.Second, silent: kube.Silence, removal: 90 * time.Second}

// Reasons why an interrupted run has no record of a node.
var (
	errNotBegun    = errors.New("not begun")
	errInterrupted = errors.New("interrupted")
)

// Result is the result of a node.
type Result struct {
	Node string
	Path string // of its fetched record, or ""
	Err  error  // why the record is missing or incomplete
	left bool   // its Job may still exist
}

// Nodes returns the sorted names of the nodes of a selector in kubectl's notation, with
// metadata.name for the name of a node. A selector of names needs no cluster, and client may
// be nil.
func Nodes(ctx context.Context, client *kube.Client, selector string) ([]string, error) {
	s, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--nodes: %w; write a selector such as pool=bench,kubernetes.io/arch=amd64 or metadata.name in (a,b)", err)
	}
	if names := named(s); names != nil || client == nil {
		return names, nil
	}
	all, err := client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kube.Explain(err, "list the nodes")
	}
	var names []string
	for _, n := range all.Items {
		if s.Matches(labels.Merge(n.Labels, labels.Set{nameKey: n.Name})) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	if names == nil {
		return nil, fmt.Errorf("--nodes: none of the cluster's %d nodes matches %s; kubectl get nodes --show-labels has their labels", len(all.Items), selector)
	}
	return names, nil
}

const nameKey = "metadata.name"

// named returns the nodes of a selector that has only names.
func named(s labels.Selector) []string {
	all, _ := s.Requirements()
	if len(all) != 1 || all[0].Key() != nameKey {
		return nil
	}
	switch all[0].Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return slices.Sorted(slices.Values(all[0].ValuesUnsorted()))
	}
	return nil
}

// Run runs the plan on every node and removes its objects. Failures of a node are in its
// result; the error is that of the whole run.
func (f *Fleet) Run(ctx context.Context, nodes []string) ([]Result, error) {
	if f.exec == nil {
		f.exec = f.Client.Exec
	}
	if f.times == (times{}) {
		f.times = usual
	}
	if err := f.mayAll(ctx); err != nil {
		return nil, err
	}
	lease, err := kube.Hold(ctx, f.Client, f.Namespace, f.RunID)
	if err != nil {
		return nil, err
	}
	_, err = f.Client.ConfigMaps(f.Namespace).Create(ctx, f.ConfigMap(), metav1.CreateOptions{})
	err = kube.Explain(err, "create the plan's ConfigMap")
	var results []Result
	if err == nil {
		results = f.all(ctx, nodes)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.removal)
	defer cancel()
	left := f.remove(ctx, results)
	if left != nil {
		left = fmt.Errorf("%w; tare clean --kube removes it later", left)
	}
	return results, errors.Join(err, left, lease.Release(ctx, left != nil))
}

func (f *Fleet) all(ctx context.Context, nodes []string) []Result {
	f.of = len(nodes)
	results := make([]Result, len(nodes))
	free := make(chan struct{}, f.Parallel)
	var wg sync.WaitGroup
	for i, node := range nodes {
		results[i] = Result{Node: node, Err: errNotBegun}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			continue
		}
		wg.Go(func() {
			defer func() { <-free }()
			results[i] = f.node(ctx, node)
			f.mu.Lock()
			f.done++
			f.mu.Unlock()
			f.tell(results[i])
		})
	}
	wg.Wait()
	return results
}

func (f *Fleet) tell(r Result) {
	switch {
	case r.Err != nil:
		f.Say(r.Node + ": " + r.Err.Error())
	case r.Path != "":
		f.Say(r.Node + ": record: " + r.Path)
	default:
		f.Say(r.Node + ": done")
	}
}

// progress reports how many nodes are done, and the state of one node.
func (f *Fleet) progress(node, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Progress(fmt.Sprintf("%d of %d nodes done; %s: %s", f.done, f.of, node, text))
}

// node runs the plan on one node and removes its Job.
func (f *Fleet) node(ctx context.Context, node string) Result {
	r, job := Result{Node: node, left: true}, f.Job(node)
	r.Err = f.try(ctx, "create its Job", func() error {
		_, err := f.Client.Jobs(f.Namespace).Create(ctx, job, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer to an earlier request was lost
			return nil
		}
		return err
	})
	if r.Err != nil {
		return r
	}
	var pod *corev1.Pod
	pod, r.Err = f.await(ctx, node, job.Name)
	if pod != nil && f.Results.Here() {
		var none error
		if r.Path, none = f.fetch(ctx, pod.Name, node); none != nil {
			r.Err = errors.Join(r.Err, none)
		}
	}
	switch {
	case ctx.Err() == nil:
		r.left = f.removeJob(ctx, job.Name) != nil // retried at the end
	case r.Err != nil:
		r.Err = errInterrupted
	}
	return r
}
