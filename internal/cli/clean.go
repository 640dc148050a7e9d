package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/fleet"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/workspace"
)

func newClean(s *app) *cobra.Command {
	var dryRun, forget, inCluster bool
	var format string
	var reach terms.Reach
	equip(&reach)
	set := option.Of(&reach)
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove what interrupted runs left behind, and nothing else",
		Long: `Find and remove what killed runs left behind: containers and their processes,
bundles, state, cgroups, mounts, and objects on engines. Each is identified by the run's
id. Active runs are left alone. If an engine does not answer, its leftovers stay listed
until it does, or until --forget; the same holds for a disk that is not mounted. tare
uses the engine addresses of the run, or those given by flags. After a reboot no container
of an unavailable engine is running, and tare reports that. The folders of runs are
/var/lib/tare/ID and /run/tare/ID. Without root they are below /tmp/tare-UID, and only the
same user's tare clean finds them.

An engine or runtime may continue a start after its client is gone. tare clean waits for
it for up to a minute, and checks again after the removal. For Kata sandboxes it also
removes folders, cgroups and network namespaces. If the owner of an object is unclear, tare
leaves the object and prints the command that removes it.

With --kube, tare removes leftovers from a namespace of a cluster instead. It finds Jobs,
pods, ConfigMaps and Leases by the label dev.tare.run. Runs whose Lease is renewed and
objects with another owner are left alone.`,
		Example: "  tare clean --dry-run\n  tare clean\n  tare clean --cri containerd=unix:///run/containerd/containerd.sock",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			if inCluster {
				e := reach.Engines.Of("kubernetes")
				return s.cleanCluster(c.Context(), kube.Options{Kubeconfig: e.Kubeconfig, Context: e.Context, Namespace: e.Namespace}, format, dryRun)
			}
			left, live, err := workspace.LeftoversOfEnded(workspace.DefaultRoots())
			if err != nil {
				return err
			}
			ctx := term.WithSayer(c.Context(), func(text string) { fmt.Fprintln(s.Err, "tare: "+text) })
			var errs []error
			all, known := make([]leftover, len(left)), slices.Clone(live)
			for i := range left {
				all[i].Leftover = &left[i]
				err := all[i].remove(ctx, s, reach.Engines, dryRun, forget)
				all[i].kept = err != nil
				errs, known = append(errs, err), append(known, left[i].RunID)
			}
			if err := printLeftovers(s, format, all, live, engine.Unclear("", known), dryRun); err != nil {
				return err
			}
			if format == "text" && !dryRun && len(left) > 0 && !slices.ContainsFunc(all, func(l leftover) bool { return l.kept || len(l.Absent) > 0 }) {
				fmt.Fprintln(s.Out, "a second look found nothing more")
			}
			if os.Geteuid() != 0 {
				fmt.Fprintln(s.Err, "tare: checked only this user's runs; for runs of root: sudo tare clean")
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be removed")
	c.Flags().BoolVar(&inCluster, "kube", false, "clean a cluster instead of this machine, in the namespace of --namespace")
	c.Flags().BoolVar(&forget, "forget", false, "drop leftovers on unavailable engines and on unmounted disks")
	formatFlag(c, &format, "text", "json")
	set.AddFlags(c.Flags())
	return c
}

// remove removes what a run left on engines and on the machine, or only lists the objects on
// engines.
func (l *leftover) remove(ctx context.Context, s *app, engines terms.Engines, dryRun, forget bool) (err error) {
	l.Engines, err = sweep(ctx, l.Leftover, engines, dryRun)
	switch {
	case err != nil && !forget:
		return fmt.Errorf("%w\n%s", err, unasked(l.Leftover))
	case err != nil:
		fmt.Fprintf(s.Err, "tare: forgotten: %s\n", cleanLines(err.Error()))
	}
	if dryRun {
		return nil
	}
	// The run's folder lists the engines that have its containers. It is therefore removed
	// last, after a second check of engines and sandboxes. Remove itself checks the machine
	// twice.
	if !forget { // unavailable engines were already reported
		if err := lookAgain(ctx, l.Leftover, engines); err != nil {
			return err
		}
	}
	return l.Remove(forget)
}

// lookAgain returns an error if engines or sandboxes have leftovers after the removal. A
// call that timed out may have completed since.
func lookAgain(ctx context.Context, l *workspace.Leftover, engines terms.Engines) error {
	lines, err := sweep(ctx, l, engines, true)
	if len(lines) > 0 {
		err = errors.Join(err, fmt.Errorf("run %s: a second check found new leftovers: %s; run tare clean again", l.RunID, strings.Join(lines, ", ")))
	}
	return err
}

// cleanCluster removes what killed runs left in a cluster. A run without a Lease may still
// be active and is left alone.
func (s *app) cleanCluster(ctx context.Context, o kube.Options, format string, dryRun bool) error {
	client, err := kube.Connect(o)
	if err != nil {
		return err
	}
	left, live, err := fleet.Leftovers(ctx, client)
	if err != nil {
		return err
	}
	var errs []error
	var all []leftover
	for i := range left {
		l := &left[i]
		if !l.Leased {
			fmt.Fprintf(s.Err, "run %s has no Lease and may be active: left alone; kubectl -n %s delete job,pod,configmap -l dev.tare.run=%[1]s removes %[3]s\n",
				term.Clean(l.RunID), client.Namespace, term.Clean(strings.Join(l.Objects, ", ")))
			continue
		}
		if !dryRun {
			err = l.Remove(ctx)
		}
		errs = append(errs, err)
		all = append(all, leftover{Leftover: &workspace.Leftover{RunID: term.Clean(l.RunID)}, Engines: l.Objects, kept: err != nil})
	}
	if err := printLeftovers(s, format, all, live, []string{}, dryRun); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// unasked explains what remains on an engine that does not answer.
func unasked(l *workspace.Leftover) string {
	if l.Rebooted {
		return fmt.Sprintf("the machine was rebooted after run %s: none of its containers is running, and the rest is in that engine's root; "+
			"start the engine and clean again, or, if its root is gone, run tare clean --forget", l.RunID)
	}
	return fmt.Sprintf("run %s stays listed until then; tare clean --forget drops it", l.RunID)
}

// leftover is what a killed run left on the machine and on engines.
type leftover struct {
	*workspace.Leftover
	Engines []string `json:"engines,omitempty"`
	kept    bool     // removal was incomplete
}

// printLeftovers prints what runs left behind, and unclear objects that stay.
func printLeftovers(s *app, format string, left []leftover, live, unclear []string, dryRun bool) error {
	if format == "json" {
		if live == nil {
			live = []string{}
		}
		return term.WriteJSON(s.Out, map[string]any{"dry_run": dryRun, "left_behind": left, "under_way": live, "unclear": unclear}, true)
	}
	for _, id := range live {
		fmt.Fprintf(s.Out, "run %s is active and left alone\n", term.Clean(id))
	}
	for _, line := range unclear {
		fmt.Fprintln(s.Out, term.Clean(line))
	}
	if len(left) == 0 && len(unclear) == 0 {
		_, err := fmt.Fprintln(s.Out, "nothing was left behind")
		return err
	}
	for _, l := range left {
		verb := "removed"
		switch {
		case l.kept:
			verb = "cannot be removed completely yet"
		case dryRun:
			verb = "would remove"
		case len(l.Absent) > 0:
			verb = "removed what is reachable"
		}
		fmt.Fprintf(s.Out, "run %s: %s\n", l.RunID, verb)
		each := func(before string, all []string, after string) {
			for _, one := range all {
				fmt.Fprintf(s.Out, "  %s%s%s\n", before, term.Clean(one), after)
			}
		}
		each("", l.Engines, "")
		for _, pid := range l.Processes {
			fmt.Fprintf(s.Out, "  process %d\n", pid)
		}
		each("mount ", l.Mounts, "")
		each("cgroup ", l.Cgroups, "")
		each("folder ", l.Folders, "")
		each("folder ", l.Absent, " is unreachable: is its disk mounted?")
	}
	return nil
}
