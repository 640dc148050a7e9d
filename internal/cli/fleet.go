package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		Short: "Do a plan on every node of a Kubernetes cluster, or print the manifests that do",
		Long: `Do a plan file on nodes of a Kubernetes cluster: a Job for each node, one record from
each, which reports and comparisons take as any others. docs/kubernetes.md has the
smallest Role for it, and what each plan is given of a node.`,
		Args: knownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFleetRun(s), newFleetRender(s), newFleetNode(s), newFleetKeep(s), newFleetSend(s))
	return c
}

// fleetFlags say what is done where.
type fleetFlags struct {
	nodes, results, secret string
	tolerations            []string
	requests               map[string]string
	kube                   kube.Options
	plain                  fleet.Spec // of which flags are as they are given
}

func (f *fleetFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.nodes, "nodes", "", "selector of nodes, as kubectl's -l; metadata.name is a node's name: pool=bench, or 'metadata.name in (a,b)'")
	set.StringVar(&f.plain.Image, "image", "localhost/tare:"+strings.ReplaceAll(version.String(), "+", "-"), "image of tare, which the nodes have or can pull; tare image makes it")
	set.StringArrayVar(&f.tolerations, "toleration", nil, "taint that is no matter, as kubectl taint writes it: KEY, KEY=VALUE:EFFECT, or * for all; several with several flags")
	set.StringVar(&f.plain.PriorityClass, "priority-class", "", "PriorityClass of the pods")
	set.StringToStringVar(&f.requests, "requests", map[string]string{"cpu": "1", "memory": "256Mi"}, "what a pod requests: without, it is the first to starve and to be evicted")
	set.DurationVar(&f.plain.Deadline, "deadline", 6*time.Hour, "how long a node's Job may live, the fetching of its record included")
	set.StringVar(&f.results, "results", "", "where records go, pvc:NAME/path or s3://BUCKET/FOLDER (default: they are fetched)")
	set.StringVar(&f.secret, "results-secret", "", "Secret with the environment of an object store: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL of one elsewhere")
	set.StringVar(&f.kube.Kubeconfig, "kubeconfig", "", kubeconfigHelp)
	set.StringVar(&f.kube.Context, "context", "", contextHelp)
	set.StringVar(&f.kube.Namespace, "namespace", "", "namespace for what tare makes (default: the context's)")
}

const (
	kubeconfigHelp = "which cluster (default: as kubectl, $KUBECONFIG, else ~/.kube/config, else the pod's own)"
	contextHelp    = "context of the kubeconfig (default: its current one)"
)

// spec is what manifests are made of, and the plan, which is held to what a plan may be
// before anything is made.
func (f *fleetFlags) spec(ctx context.Context, s *app, path string) (*fleet.Spec, *plan.Plan, error) {
	if f.nodes == "" {
		return nil, nil, errors.New("--nodes: say on which nodes, by a selector such as kubernetes.io/os=linux for all")
	}
	text, err := s.planText(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Parse(path, text, s.instruments)
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
		var targets []string
		if c, ok := whom(m.Options); ok {
			targets = c.Targets
		}
		spec.Needs.Need(m.Name, targets)
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
		Short: "Do a plan on every node, and bring the records here",
		Long: `Do a plan on nodes of a cluster: tare fleet run plan.yaml --nodes pool=bench -o weighed/

Each node has a Job whose pod does what tare run does there, of as many nodes at once
as --parallel says. Its record comes here as DIR/NODE.jsonl with the label node=NODE,
by exec, by its sum, and goes on where a connection broke; or it stays on a volume.
A pod has only the rights that its plan takes: a lifecycle of host alone none, one of
floor is privileged, and whatever else weighs the node's own runtimes and engines is
done among the node's mounts and processes.

A node that dies, is drained or cordoned, or on which no pod may be, is told of with
the reason; the others go on, and the exit status is then 2. What was made in the
cluster is removed at the end, and when interrupted; what a killed tare left, tare
clean --kube removes.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			spec, p, err := f.spec(ctx, s, args[0])
			if err != nil {
				return err
			}
			if parallel < 1 {
				return errors.New("--parallel: one node at least")
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
	c.Flags().IntVar(&parallel, "parallel", 1, "nodes at once; those of one machine, or that share a disk or a network, disturb each other")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress")
	c.Flags().BoolVar(&yes, "yes", false, "begin without asking, whatever it takes")
	return c
}

// fleetFolder makes the folder of the records, if they come here.
func fleetFolder(dir string, spec *fleet.Spec) (string, error) {
	if !spec.Results.Here() {
		return "", nil
	}
	if dir == "" {
		records, err := recordsFolder()
		if err != nil {
			return "", fmt.Errorf("no place for the records: %w; name a folder with -o DIR", err)
		}
		dir = filepath.Join(records, fmt.Sprintf("fleet-%s-%s", time.Now().UTC().Format("20060102T150405Z"), spec.RunID))
	}
	return dir, newFolder(dir)
}

// fleet runs a fleet, and tells what became of it.
func (s *app) fleet(ctx context.Context, all *fleet.Fleet, nodes []string, quiet bool) error {
	var mu sync.Mutex
	began, p := time.Now(), newProgress(s, quiet)
	all.Progress = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		p.line(text, time.Since(began), 0)
	}
	all.Say = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		p.say(text)
	}
	stop := context.AfterFunc(ctx, func() { all.Say("interrupted: what was made in the cluster is removed first") })
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
	fmt.Fprintf(s.Out, "%d of %d nodes did the plan\n", len(results)-failed, len(results))
	if all.Dir != "" && os.Remove(all.Dir) != nil { // which only an empty folder can be
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
		Short: "Print the manifests that do a plan on every node, for GitOps",
		Long: `Print as YAML what tare fleet run would make: the plan's ConfigMap and a Job for each
node. The same plan, nodes and flags give the same manifests. Nobody fetches the records
of what others apply, so they have to go somewhere, and tare clean leaves it alone.
Where --nodes only names nodes, no cluster is asked for them.

With --schedule each node has a CronJob, so that the plan is done again and again. It is
called after the plan's name, the namespace and the node alone: what is rendered and
applied later, of a changed plan or schedule or by a newer tare, replaces it.`,
		Example: "  tare fleet render plan.yaml --nodes 'metadata.name in (a,b)' --results pvc:records --namespace bench",
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			spec, p, err := f.spec(ctx, s, args[0])
			if err != nil {
				return err
			}
			if spec.Results.Here() {
				return errors.New("--results: nobody fetches the records of what others apply; name a place for them, pvc:NAME/path or s3://BUCKET/FOLDER")
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
			if spec.Schedule != "" { // a CronJob is changed in place, and beside one of another name it would measure that
				spec.RunID = fleet.IDOf("schedule", p.Name, spec.Namespace)
			}
			return spec.Render(s.Out, nodes)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&f.plain.Schedule, "schedule", "", "CronJobs in place of Jobs, by this: '0 3 * * *' is every night at three, by the clock of the cluster's controllers")
	return c
}

// The rest is what a Job's containers call.

func newFleetNode(s *app) *cobra.Command {
	var name, to string
	var host bool
	c := &cobra.Command{
		Use: "node PLAN", Short: "Do a plan in the pod of a node, into one record", Hidden: true, Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			code, err := fleet.Perform(c.Context(), args[0], fleet.Document, host)
			files, _, none := s.filesOf(fleet.Document)
			switch {
			case none == nil:
				err = errors.Join(err, s.joinNode(files, to, name))
			case code == 0: // else its status says that there is none
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
	c.Flags().BoolVar(&host, "host", false, "among the mounts of the node")
	return c
}

// joinNode makes one file of a node's records, each with the node's name.
func (s *app) joinNode(files []string, path, node string) error {
	if _, err := os.Stat(path); err == nil { // on a volume, of an earlier run
		path = fmt.Sprintf("%s-%s.jsonl", record.Stem(path), time.Now().UTC().Format("20060102T150405Z"))
	}
	w, err := s.lines().Create(path)
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
	if info, e := os.Stat(path); e == nil && info.Size() == 0 { // it would be fetched, and lie among records
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func newFleetKeep(*app) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Short: "Stay until asked to end", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			<-c.Context().Done()
			return nil
		},
	}
}

func newFleetSend(s *app) *cobra.Command {
	var from int64
	c := &cobra.Command{
		Use: "send FILE", Short: "Write a file's size, its sum, and its bytes from one on", Hidden: true, Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return fleet.Send(s.Out, args[0], from) },
	}
	c.Flags().Int64Var(&from, "from", 0, "the first byte")
	return c
}
