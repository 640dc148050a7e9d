package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/fleet"
	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

func newFleet(s *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Run a plan on every node of a Kubernetes cluster, or print its manifests",
		Long: `Run a plan file on nodes of a Kubernetes cluster. Each node has a Job and one record,
which reports and comparisons accept like any other. docs/kubernetes.md has the
minimal Role and the access to a node that each plan needs.`,
		Args: knownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFleetRun(s), newFleetRender(s), newFleetNode(s), newFleetKeep(s), newFleetSend(s))
	return c
}

// fleetFlags are the flags of tare fleet run and render.
type fleetFlags struct {
	nodes, results, secret string
	tolerations            []string
	requests               map[string]string
	kube                   kube.Options
	plain                  fleet.Spec // fields set directly by flags
}

func (f *fleetFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.nodes, "nodes", "", "node selector, as kubectl's -l; metadata.name selects by name: pool=bench, or 'metadata.name in (a,b)'")
	set.StringVar(&f.plain.Image, "image", "localhost/tare:"+strings.ReplaceAll(version.String(), "+", "-"), "tare's image, present on the nodes or pullable; tare image builds it")
	set.StringArrayVar(&f.tolerations, "toleration", nil, "taint to tolerate, as in kubectl taint: KEY, KEY=VALUE:EFFECT, or * for all; can be repeated")
	set.StringVar(&f.plain.PriorityClass, "priority-class", "", "PriorityClass of the pods")
	set.StringToStringVar(&f.requests, "requests", map[string]string{"cpu": "1", "memory": "256Mi"}, "resource requests of a pod; a pod without requests is throttled and evicted first")
	set.DurationVar(&f.plain.Deadline, "deadline", 6*time.Hour, "deadline of a node's Job, including the fetch of its record")
	set.StringVar(&f.results, "results", "", "destination of records, pvc:NAME/path or s3://BUCKET/FOLDER (default: fetch them)")
	set.StringVar(&f.secret, "results-secret", "", "Secret with the environment for the object store: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL if it is not AWS")
	set.StringVar(&f.kube.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	set.StringVar(&f.kube.Context, "context", "", "context of the kubeconfig (default: its current one)")
	set.StringVar(&f.kube.Namespace, "namespace", "", "namespace for tare's objects (default: the context's)")
}

// spec returns the spec of the manifests and the plan. It validates the plan before any
// object is created.
func (f *fleetFlags) spec(ctx context.Context, s *app, path string) (*fleet.Spec, *plan.Plan, error) {
	if f.nodes == "" {
		return nil, nil, errors.New("--nodes: missing; give a selector, such as kubernetes.io/os=linux for all nodes")
	}
	text, p, err := s.loadPlan(path)
	if err != nil {
		return nil, nil, err
	}
	spec := &f.plain
	spec.PlanName, spec.Plan = filepath.Base(record.Stem(path)), text
	if filepath.Ext(spec.PlanName) == "" {
		spec.PlanName += ".yaml"
	}
	for i := range p.Measure {
		m := &p.Measure[i]
		equip(m.Options)
		if err := m.Set.Finish(ctx); err != nil {
			return nil, nil, err
		}
		w, _ := whom(m.Options)
		spec.Needs.Need(m.Name, w.Targets)
	}
	for _, text := range f.tolerations {
		t, err := fleet.ParseToleration(text)
		if err != nil {
			return nil, nil, err
		}
		spec.Tolerations = append(spec.Tolerations, t)
	}
	if spec.Requests, err = fleet.ParseRequests(f.requests); err == nil {
		spec.Results, err = fleet.ParseResults(f.results, f.secret)
	}
	return spec, p, errors.Join(err, spec.Check())
}

func newFleetRun(s *app) *cobra.Command {
	var f fleetFlags
	var dir string
	var parallel int
	var quiet, yes bool
	c := &cobra.Command{
		Use:   "run PLAN|RECORD --nodes SELECTOR",
		Short: "Run a plan on every node, and fetch the records",
		Long: `Run a plan on nodes of a cluster: tare fleet run plan.yaml --nodes pool=bench -o weighed/

Each node has a Job whose pod does the same as tare run. --parallel sets how many nodes
run at once. Records are fetched as DIR/NODE.jsonl with the label node=NODE, or stay on a
volume. The transfer uses exec, is verified by a checksum and resumes after a disconnect.
A pod has only the privileges that its plan needs: none for a lifecycle of host alone, a
privileged container for floor. To measure the node's own runtimes and engines, a pod runs
in the node's mount and PID namespaces.

If a node dies, is drained or cordoned, or accepts no pod, tare reports the reason and
continues with the others; the exit status is then 2. Objects in the cluster are removed
at the end and on an interrupt. After a killed tare, tare clean --kube removes them.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			spec, p, err := f.spec(ctx, s, args[0])
			if err != nil {
				return err
			}
			if parallel < 1 {
				return errors.New("--parallel: must be at least 1")
			}
			client, err := kube.Connect(f.kube)
			if err != nil {
				return err
			}
			nodes, err := fleet.Nodes(ctx, client, f.nodes)
			if err != nil {
				return err
			}
			spec.RunID, spec.Namespace = workspace.NewID(), client.Namespace
			if !quiet {
				fmt.Fprintf(s.Err, "tare: run %s on %d nodes, %d at once, in pods that are %s; on each:\n", spec.RunID, len(nodes), parallel, spec.Needs)
			}
			if err := s.ahead(ctx, p.Measure, quiet, yes); err != nil {
				return err
			}
			if dir, err = fleetFolder(dir, spec); err != nil {
				return err
			}
			all := fleet.Fleet{Spec: *spec, Client: client, Parallel: parallel, Dir: dir}
			return s.fleet(ctx, &all, nodes, quiet)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVarP(&dir, "output", "o", "", "folder for the records (default: a new one in the user's data folder)")
	c.Flags().IntVar(&parallel, "parallel", 1, "number of nodes at once; nodes that share a machine, disk or network disturb each other")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress")
	c.Flags().BoolVar(&yes, "yes", false, "start without confirmation")
	return c
}

// fleetFolder creates the folder for fetched records.
func fleetFolder(dir string, spec *fleet.Spec) (string, error) {
	if !spec.Results.Here() {
		return "", nil
	}
	if dir == "" {
		records, err := recordsFolder()
		if err != nil {
			return "", fmt.Errorf("find the records folder: %w; name a folder with -o DIR", err)
		}
		dir = filepath.Join(records, fmt.Sprintf("fleet-%s-%s", time.Now().UTC().Format("20060102T150405Z"), spec.RunID))
	}
	return dir, newFolder(dir)
}

// fleet runs a plan on all nodes and prints the results.
func (s *app) fleet(ctx context.Context, all *fleet.Fleet, nodes []string, quiet bool) error {
	began, p := time.Now(), newProgress(s, quiet)
	all.Progress, all.Say = func(text string) { p.line(text, time.Since(began), 0) }, p.say
	stop := context.AfterFunc(ctx, func() { all.Say("interrupted: removing tare's objects from the cluster first") })
	results, err := all.Run(ctx, nodes)
	stop()
	p.done()
	if results == nil {
		return err
	}
	failed := 0
	for _, r := range results {
		if r.Err != nil {
			failed++
			fmt.Fprintf(s.Out, "%s: %s\n", cleanLines(r.Node), cleanLines(r.Err.Error()))
		}
	}
	fmt.Fprintf(s.Out, "%d of %d nodes completed the plan\n", len(results)-failed, len(results))
	if all.Dir != "" && os.Remove(all.Dir) != nil { // succeeds only if the folder is empty
		fmt.Fprintf(s.Out, "records: %s\n", all.Dir)
	}
	if err != nil {
		fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(err.Error()))
	}
	switch {
	case ctx.Err() != nil:
		return exit{ExitInterrupted}
	case failed > 0:
		return exit{ExitFailed}
	case err != nil:
		return exit{ExitUsage}
	}
	return nil
}

func newFleetRender(s *app) *cobra.Command {
	var f fleetFlags
	c := &cobra.Command{
		Use:   "render PLAN|RECORD --nodes SELECTOR --results pvc:NAME",
		Short: "Print the manifests for a plan on every node, for GitOps",
		Long: `Print as YAML what tare fleet run would create: the plan's ConfigMap and a Job for each
node. The same plan, nodes and flags give the same manifests. tare does not fetch the
records of applied manifests, so they need a destination, and tare clean leaves these
objects alone. If --nodes only has node names, tare does not contact the cluster.

With --schedule each node has a CronJob that repeats the plan. Its name depends only on
the plan's name, the namespace and the node. So manifests that are rendered later replace
it, even with a changed plan or schedule or by a newer tare.`,
		Example: "  tare fleet render plan.yaml --nodes 'metadata.name in (a,b)' --results pvc:records --namespace bench",
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			spec, p, err := f.spec(ctx, s, args[0])
			if err != nil {
				return err
			}
			if spec.Results.Here() {
				return errors.New("--results: records of applied manifests are not fetched; name a destination, pvc:NAME/path or s3://BUCKET/FOLDER")
			}
			nodes, err := fleet.Nodes(ctx, nil, f.nodes)
			if spec.Namespace = f.kube.Namespace; err == nil && nodes == nil {
				var client *kube.Client
				if client, err = kube.Connect(f.kube); err == nil {
					spec.Namespace = client.Namespace
					nodes, err = fleet.Nodes(ctx, client, f.nodes)
				}
			}
			if err != nil {
				return err
			}
			spec.RunID = fleet.IDOf(string(spec.Plan), spec.Image, spec.Namespace)
			if spec.Schedule != "" { // a fixed name, so that kubectl apply updates the CronJob; two CronJobs would measure each other
				spec.RunID = fleet.IDOf("schedule", p.Name, spec.Namespace)
			}
			return spec.Render(s.Out, nodes)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&f.plain.Schedule, "schedule", "", "create CronJobs with this schedule instead of Jobs: '0 3 * * *' is every night at three, in the time zone of the cluster's controllers")
	return c
}

// The commands below run in a Job's containers.

func newFleetNode(s *app) *cobra.Command {
	var name, to string
	var host bool
	c := &cobra.Command{
		Use: "node PLAN", Short: "Run a plan in the pod of a node and write one record", Hidden: true, Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			code, err := fleet.Perform(c.Context(), args[0], fleet.Document, host)
			files, _, none := s.filesOf(fleet.Document)
			switch {
			case none == nil:
				err = errors.Join(err, s.joinNode(files, to, name))
			case code == 0: // otherwise the exit code already reports the failure
				err = errors.Join(err, none)
			}
			if err != nil {
				return err
			}
			return ended(code)
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the node")
	c.Flags().StringVarP(&to, "output", "o", "", "the record")
	c.Flags().BoolVar(&host, "host", false, "run in the node's mount namespace")
	return c
}

// joinNode joins a node's records to one file and labels each with the node's name.
func (s *app) joinNode(files []string, path, node string) error {
	if _, err := os.Stat(path); err == nil { // the record of an earlier run on the volume
		path = fmt.Sprintf("%s-%s.jsonl", record.Stem(path), time.Now().UTC().Format("20060102T150405Z"))
	}
	w, err := s.create(path)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, e := w.Join(file); e != nil {
			err = errors.Join(err, e)
			continue
		}
		err = errors.Join(err, w.Write(record.Label{Key: "node", Value: node}))
	}
	err = errors.Join(err, w.Close())
	if info, e := os.Stat(path); e == nil && info.Size() == 0 { // an empty file would be fetched as a record
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func newFleetKeep(*app) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Short: "Wait for a signal", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			<-c.Context().Done()
			return nil
		},
	}
}

func newFleetSend(s *app) *cobra.Command {
	var from int64
	c := &cobra.Command{
		Use: "send FILE", Short: "Write a file's size, its checksum, and its content from an offset", Hidden: true, Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return fleet.Send(s.Out, args[0], from) },
	}
	c.Flags().Int64Var(&from, "from", 0, "offset of the first byte")
	return c
}
