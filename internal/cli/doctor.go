package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/doctor"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/internal/workspace"
)

func newDoctor(s *app) *cobra.Command {
	var format string
	var try, all bool
	var reach terms.Reach
	equip(&reach)
	set := option.Of(&reach)
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what can be measured here, and how to fix what cannot",
		Long: `Print what can be measured here, how to measure more, and what to know before
measuring. --all prints every check of runtimes, engines and kernel facilities, with its
version. Nothing on the machine is changed. A runtime or an engine is "ok" only with --try,
which starts one workload on each and removes it.`,
		Example: "  tare doctor\n  tare doctor --all\n  tare doctor --try\n  tare doctor --format json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			roots := workspace.DefaultRoots()
			checks := doctor.Facilities(
				doctor.Folder{Name: "run", Path: roots.Data, Refusal: workspace.Refusal(roots.Data)},
				doctor.Folder{Name: "state", Path: roots.State, Refusal: workspace.Refusal(roots.State)})
			targets := find.All(c.Context(), settings(&reach.Whom), true)
			if c.Context().Err() != nil {
				return c.Context().Err()
			}
			var tried map[string]error
			var left error
			if try {
				if tried, left = tryAll(c.Context(), s, targets, reach.Engines); tried == nil {
					return left
				}
			}
			groups, err := machine.Root("").Cgroups()
			hybrid := err == nil && groups.Mode() == machine.ModeHybrid
			for _, f := range targets {
				checks = append(checks, targetCheck(f, tried, hybrid))
			}
			checks = append(checks, kataCheck(targets, tried), watchCheck())
			checks = append(checks, toolChecks(c.Context())...)
			if format == "json" {
				return errors.Join(doctor.RenderJSON(s.Out, checks), left)
			}
			return errors.Join(doctor.Render(s.Out, checks, all), left)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "print every check, including those that pass")
	c.Flags().BoolVar(&try, "try", false, "start one workload on each runtime and engine, and remove it")
	formatFlag(c, &format, "text", "json")
	set.AddFlags(c.Flags())
	return c
}

// toolChecks checks the programs that generate load in sandboxes.
func toolChecks(ctx context.Context) []doctor.Check {
	var all []doctor.Check
	for _, t := range []struct{ name, why, without, pkg string }{
		{storage.ToolFio, "load of tare storage and of tare overhead's phases such as 1G; copied into sandboxes with its libraries",
			"without it tare overhead has no write phases, and tare storage only dd and sysbench and no device limit", "fio"},
		{storage.ToolSysbench, "load of tare storage; copied into sandboxes with its libraries", "without it tare storage has no sysbench jobs", "sysbench"},
		{storage.ToolDD, "load of tare storage; copied into sandboxes with its libraries", "without it tare storage has no dd jobs", "coreutils"},
	} {
		c := doctor.Check{Area: doctor.AreaLoad, Name: t.name, Status: doctor.OK, Why: t.why}
		program, err := storagerun.FindTool(ctx, t.name)
		if err != nil {
			c.Status, c.Why, c.Fix = doctor.Limited, t.without+": "+err.Error(), "apt-get install "+t.pkg
		} else {
			c.Version = program.Version
		}
		all = append(all, c)
	}
	return all
}

// targetCheck returns the check of one target. tried has the results of the trial starts,
// and is nil without a trial. hybrid is true if the machine uses hybrid cgroups.
func targetCheck(f find.Found, tried map[string]error, hybrid bool) doctor.Check {
	c := doctor.Check{Area: doctor.AreaRuntime, Name: f.Name}
	if find.IsEngine(f.Name) {
		c.Area = doctor.AreaEngine
	}
	if f.Target == nil {
		c.Status, c.Why, c.Fix = doctor.Missing, f.Why.Reason, f.Why.Advice
		return c
	}
	info := f.Target.Info()
	c.Status, c.Version = doctor.NotTried, info.Version
	if err, is := tried[f.Name]; is && err != nil {
		c.Status, c.Why, c.Fix = doctor.Missing, "a workload could not be started: "+err.Error(), "tare lifecycle "+f.Name+" --rounds 1"
		return c
	} else if is {
		c.Status = doctor.OK
	} else if absent := info.Config[kata.Absent]; absent != "" {
		c.Status, c.Why = doctor.Missing, info.Config["kata config"]+" names files that do not exist: "+absent
		return c
	} else if engine, runtime, _ := strings.Cut(f.Name, "/"); hybrid && runtime == "crun" && engine != "podman" { // tare starts podman without cgroup2
		c.Status, c.Why = doctor.Missing, "crun refuses hybrid cgroups, so every start fails; boot with systemd.unified_cgroup_hierarchy=1, or use another runtime"
		return c
	}
	parts := info.Notes
	if info.Path != "" {
		parts = append([]string{info.Path}, parts...)
	}
	if of := page.Kata(&info); of != "" {
		parts = append([]string{of}, parts...)
	}
	c.Why = strings.Join(parts, "; ")
	return c
}

// kataCheck reports which engines and handlers can run Kata, or what is missing.
func kataCheck(targets []find.Found, tried map[string]error) doctor.Check {
	const shim, kept = "containerd-shim-kata-v2", "/opt/kata/bin/containerd-shim-kata-v2"
	c := doctor.Check{Area: doctor.AreaRuntime, Name: "Kata Containers", Status: doctor.NotTried}
	var here, absent []string
	for _, f := range targets {
		_, handler, behind := strings.Cut(f.Name, "/")
		switch {
		case f.Target == nil && behind && kata.Is(handler):
			absent = append(absent, f.Name)
		case f.Target != nil && tried == nil && f.Target.Info().Config[kata.Absent] != "":
			absent = append(absent, f.Name+" (its configuration names missing files: "+f.Target.Info().Config[kata.Absent]+")")
		case f.Target != nil && f.Target.Info().Config["kata config"] != "":
			here = append(here, f.Name)
			if err, is := tried[f.Name]; is && err == nil {
				c.Status = doctor.OK
			} else if is && c.Status != doctor.OK {
				c.Status = doctor.Missing
			}
		}
	}
	if here != nil {
		c.Why = "available as " + strings.Join(here, ", ") + "; to measure it: tare overhead " + here[0]
		if strings.HasPrefix(here[0], "cri+") {
			c.Why += " --network bridge, since a VM cannot use the host's network"
		}
		return c
	}
	c.Status, c.Why = doctor.Missing, "no engine here can run it"
	if absent != nil {
		c.Why += ", although these handlers are configured: " + strings.Join(absent, ", ")
	}
	path, err := exec.LookPath(shim)
	switch _, statErr := os.Stat(kept); {
	case err == nil:
		c.Why += "; its shim is installed at " + path + ": configure a handler of type io.containerd.kata.v2 and add that folder to the engine's PATH"
	case statErr == nil:
		c.Why += "; its shim is not on PATH"
		c.Fix = "ln -s " + kept + " /usr/local/bin/"
	default:
		c.Why += "; " + shim + " is not installed: install Kata Containers (its releases unpack into /opt/kata) and configure a handler of type io.containerd.kata.v2"
	}
	return c
}
