package cli

import (
	"context"
	"errors"
	"fmt"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tare-bench/tare/internal/doctor"
	startuprun "github.com/tare-bench/tare/internal/instrument/startup/run"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/command"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

func newStartup(s Streams) *cobra.Command {
	p := startup.Defaults()
	set := option.Of(&p)
	var logs logFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "startup [TARGET...] [-- COMMAND [ARGUMENT...]]",
		Short: "See where the seconds of a start go, live or in logs",
		Long: `Start containers on each target, or run any command that starts one, and watch
every process that takes part: the client, what daemons start, shims, each call
of the OCI runtime, its init, network plugins one by one, monitors, VMMs; each
with its start, end, CPU time and exit code on one clock, to the workload's first
instruction. What nothing explains is a gap; gaps are ranked, and those that look
like a timer somebody waited for are named.

With --log, --journal or both, starts are put together from the logs of Kata
(runtime, agent, proxy, runtime-rs), containerd, CRI-O, docker and runsc, in any
mixture. No configuration, no root.

A command is run as it is, --warmup plus --rounds times, and what it leaves behind
is yours. Give "docker run --rm", not "docker run -d", or expect that many
containers. Without TARGET and COMMAND, everything that can be weighed here is
started. Targets are those of tare lifecycle.`,
		Example: `  tare startup runc --rounds 3
  tare startup host runc --rounds 2 --format md
  tare startup --rounds 2 -- sh -c 'sleep 0.01'
  tare startup --log kata.log --log containerd.log --format chrome`,
		RunE: func(c *cobra.Command, args []string) error {
			var asked []string
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				args, asked = args[:dash], args[dash:]
				if len(asked) == 0 {
					return errors.New("a command has to follow --, such as tare startup -- docker run --rm busybox true")
				}
				p.Commands = []startup.Command{{Name: nameOfCommand(asked), Args: asked}}
			}
			p.Targets = args
			if logs.given() {
				return logs.read(c.Context(), s, c.Flags(), set, p, out)
			}
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			return weighStartup(c.Context(), s, p, out)
		},
	}
	set.AddFlags(c.Flags())
	logs.add(c.Flags())
	out.addRecord(c.Flags())
	out.addStarts(c.Flags())
	return c
}

// addStarts adds the flags of reports of starts.
func (f *outputFlags) addStarts(set *pflag.FlagSet) {
	set.StringVar(&f.format, "format", "text", "text, json, md or csv; chrome: a trace for Perfetto; otlp: spans of OpenTelemetry")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "show everything: every process, every gap")
}

// nameOfCommand is what a command is called in reports: its program and its
// first word that is no flag.
func nameOfCommand(args []string) string {
	name := term.Clean(args[0][strings.LastIndexByte(args[0], '/')+1:])
	if len(args) > 1 && len(args[1]) > 0 && len(args[1]) < 20 && args[1][0] != '-' {
		name += " " + term.Clean(args[1])
	}
	if len(name) > startup.MaxCommandName {
		name = name[:startup.MaxCommandName]
	}
	return name
}

// weighStartup performs a startup plan.
func weighStartup(ctx context.Context, s Streams, p startup.Options, out outputFlags) error {
	return weigh(ctx, s, &out, weighing{
		experiment: "startup", engines: p.Engines, steady: true,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			commands, err := startCommands(p.Commands)
			if err != nil {
				return nil, nil, err
			}
			if err := tracer.Check(); err != nil {
				return nil, nil, fmt.Errorf("%w\nlogs of starts are read without: tare startup --log FILE", err)
			}
			if len(p.Targets) > 0 || len(commands) == 0 {
				targets, skipped, err = choose(ctx, s, selection{Whom: &p.Whom}, out.quiet)
			}
			return append(targets, commands...), skipped, err
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			return outcome(startuprun.Run(ctx, startuprun.Options{
				Plan: p, Options: o.options, Targets: o.targets, Callers: procs.Own, Daemons: daemons,
				Watch: func() (startuprun.Watch, error) { return tracer.Open() },
			}))
		},
	})
}

func startCommands(all []startup.Command) (targets []subject.Target, err error) {
	for _, c := range all {
		t, err := command.New(c.Name, c.Args)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// daemons are the engines' daemons, and what stays beside containers. What they
// start is looked at, and is part of a start only where that is evident, see package
// proctree.
func daemons() (all []proctree.Root) {
	for _, f := range procs.Programs() {
		switch f.Role {
		case record.RoleDaemon, record.RoleShim, record.RoleMonitor:
			all = append(all, proctree.Root{Pid: f.Pid, Kind: proctree.Kind(f.Role), Name: f.Name})
		}
	}
	return all
}

// watchCheck tells whether starts can be watched here.
func watchCheck() doctor.Check {
	c := doctor.Check{Area: doctor.AreaKernel, Name: "watching starts", Version: record.MethodBPF, Status: doctor.OK,
		Why: "tare startup watches every process of a start"}
	if err := tracer.Check(); err != nil {
		c.Version, c.Status = "", doctor.Missing
		c.Why += fmt.Sprintf("; %v", err)
		if os.Geteuid() != 0 {
			c.Fix = "sudo tare doctor"
		}
	}
	return c
}
