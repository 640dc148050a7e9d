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
		Short: "Remove what interrupted runs left, and nothing else",
		Long: `Find what runs that were killed left behind: containers and their processes,
bundles, state, cgroups, mounts, and what they made on engines, each by the run's
id, and remove it. Runs that are under way are left alone. What is on an engine that does not answer is
kept in mind until it does, or until --forget; so is what is on a disk that is not
mounted. Engines are asked where the run found them, or where flags say that they
are now. After a reboot it is said that no container runs any more where one does
not answer. The folders of runs are /var/lib/tare/ID and
/run/tare/ID; of a user without root they lie below /tmp/tare-UID, and are found by
this user's tare clean.

tare clean waits for starts that an engine or a runtime goes on with after its client
has gone, up to a minute, and looks a second time after the removal. Of Kata's sandboxes
it removes folders, cgroups and network namespaces, too. What may be a run's and is not
known to be so stays, and is named with the command that removes it.

With --kube, what runs of killed machines left in a namespace of a cluster is found
instead, by the label dev.tare.run: Jobs, pods, ConfigMaps and Leases. A run whose
Lease is renewed is left alone, and so is what has another owner.`,
		Example: "  tare clean --dry-run\n  tare clean\n  tare clean --cri containerd=unix:///run/containerd/containerd.sock",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if inCluster {
				given := func(flag string) string { return c.Flags().Lookup(flag).Value.String() }
				return s.cleanCluster(c.Context(), kube.Options{Kubeconfig: given("kubeconfig"), Context: given("context"), Namespace: given("namespace")}, format, dryRun)
			}
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			left, live, err := workspace.Leftovers(workspace.DefaultRoots())
			if err != nil {
				return err
			}
			ctx := term.WithSayer(c.Context(), func(text string) { fmt.Fprintln(s.Err, "tare: "+text) })
			var errs []error
			all := make([]leftover, len(left))
			for i := range left {
				all[i].Leftover = &left[i]
				var err error
				all[i].Engines, err = sweep(ctx, &left[i], reach.Engines, dryRun)
				if err != nil && forget {
					fmt.Fprintf(s.Err, "tare: forgotten: %s\n", cleanLines(err.Error()))
					err = nil
				} else if err != nil {
					err = fmt.Errorf("%w\n%s", err, unasked(&left[i]))
				}
				// The run's folder says where its containers are: it goes last, after a second
				// look. Its removal looks twice by itself.
				if err == nil && !dryRun && !forget { // what cannot be asked was said
					err = lookAgain(ctx, &left[i], reach.Engines)
				}
				if err == nil && !dryRun {
					err = left[i].Remove(forget)
				}
				all[i].kept = err != nil
				errs = append(errs, err)
			}
			known := slices.Clone(live)
			for i := range left {
				known = append(known, left[i].RunID)
			}
			if err := printLeftovers(s, format, all, live, engine.Unclear("", known), dryRun); err != nil {
				return err
			}
			if format == "text" && !dryRun && len(left) > 0 && !slices.ContainsFunc(all, func(l leftover) bool { return l.kept || len(l.Absent) > 0 }) {
				fmt.Fprintln(s.Out, "a second look found nothing more")
			}
			if os.Geteuid() != 0 {
				fmt.Fprintln(s.Err, "tare: looked for what this user's runs left; what root's left is found by root only: sudo tare clean")
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be removed")
	c.Flags().BoolVar(&inCluster, "kube", false, "what was left in a cluster, in the namespace of --namespace")
	c.Flags().BoolVar(&forget, "forget", false, "give up what is on engines that cannot be asked any more, or on disks that are not mounted")
	formatFlag(c, &format, "text", "json")
	set.AddFlags(c.Flags())
	return c
}

// lookAgain is the error of what is on engines and of what sandboxes left after all was removed:
// a call that was given up may have been answered since.
func lookAgain(ctx context.Context, l *workspace.Leftover, engines terms.Engines) error {
	lines, err := sweep(ctx, l, engines, true)
	if len(lines) > 0 {
		err = errors.Join(err, fmt.Errorf("run %s: a second look found what was not there before, or came back: %s; tare clean looks again", l.RunID, strings.Join(lines, ", ")))
	}
	return err
}

// cleanCluster removes what dead runs left in a cluster. Of a run that has no Lease it is
// not known whether it is dead.
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
			fmt.Fprintf(s.Err, "run %s has no Lease, so whether it is under way is not known: left alone; kubectl -n %s delete job,pod,configmap -l dev.tare.run=%[1]s removes %[3]s\n",
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

// unasked says what is to be thought of an engine that does not answer.
func unasked(l *workspace.Leftover) string {
	if l.Rebooted {
		return fmt.Sprintf("the machine was started again since run %s: none of its containers runs any more, and what is left lies in that engine's root; "+
			"start the engine and clean again, or, if its root is gone, tare clean --forget", l.RunID)
	}
	return fmt.Sprintf("run %s is kept in mind until then; tare clean --forget gives up what is there", l.RunID)
}

// leftover is what a dead run left on the machine and on engines.
type leftover struct {
	*workspace.Leftover
	Engines []string `json:"engines,omitempty"`
	kept    bool     // it could not all be removed
}

// printLeftovers shows what runs left, and what may be theirs and stays.
func printLeftovers(s *app, format string, left []leftover, live, unclear []string, dryRun bool) error {
	if format == "json" {
		if live == nil {
			live = []string{}
		}
		return term.WriteJSON(s.Out, map[string]any{"dry_run": dryRun, "left_behind": left, "under_way": live, "unclear": unclear}, true)
	}
	for _, id := range live {
		fmt.Fprintf(s.Out, "run %s is under way and left alone\n", term.Clean(id))
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
			verb = "cannot all be removed yet"
		case dryRun:
			verb = "would remove"
		case len(l.Absent) > 0:
			verb = "removed what is in sight"
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
		each("folder ", l.Absent, " is out of sight: is its disk mounted?")
	}
	return nil
}
