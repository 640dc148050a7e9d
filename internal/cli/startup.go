package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/doctor"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/startup"
	startuprun "github.com/tare-bench/tare/internal/instrument/startup/run"
	"github.com/tare-bench/tare/internal/instrument/startup/run/logfiles"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/command"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// extendStartup lets the verb run any command, and read logs.
func extendStartup(s *app, v *verb) {
	p := v.options.(*startup.Options)
	var from logfiles.Logs
	f := v.Flags()
	f.StringArrayVar(&from.Files, "log", nil, "read this log, or those in this folder, - for standard input; gzip, zstd, bzip2 and xz are unpacked; can be repeated. Beside a target or a command: what is written to it meanwhile stands in their starts; else nothing is started")
	f.BoolVar(&from.Journal, "journal", false, "read the system's journal (journalctl), as --log")
	f.StringVar(&from.Since, "since", "", "of --journal: from then on, as journalctl takes it (default: this boot)")
	zone := f.String("timezone", "", "with --log: the zone of times that have none, such as Europe/Berlin or Local (default: UTC, unless the log itself shows it)")
	merged := f.Bool("merged", false, "with --log or --journal: print the lines of all of them in one order, with the time between them, and nothing else")
	v.Use += " [-- COMMAND [ARGUMENT...]]"
	v.RunE = func(c *cobra.Command, args []string) error {
		if dash := c.ArgsLenAtDash(); dash >= 0 {
			asked := args[dash:]
			if args = args[:dash]; len(asked) == 0 {
				return errors.New("a command has to follow --, such as tare startup -- docker run --rm busybox true")
			}
			p.Commands = []startup.Command{{Name: nameOfCommand(asked), Args: asked}}
		}
		var err error
		if from.Zone, err = time.LoadLocation(*zone); err != nil {
			return fmt.Errorf("invalid --timezone %q: write a name such as Europe/Berlin, Local or UTC", *zone)
		}
		reads := len(from.Files) > 0 || from.Journal || f.Changed("since")
		if reads { // without --log in between, a shell's *.log gives the rest as arguments
			files := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isFile(arg) })
			args = slices.DeleteFunc(args, isFile)
			from.Files = append(from.Files, files...)
		}
		switch beside := len(args)+len(p.Commands) > 0; {
		case reads && !beside:
			return readStarts(c.Context(), s, v, from, *merged)
		case *merged:
			return errors.New("--merged prints lines of logs and nothing else: give it --log or --journal, and neither a target nor a command")
		case f.Changed("since"):
			return errors.New("--since is about the journal without a target: beside one it is read from when the run began")
		}
		_, take := v.set.Arguments()
		take(args)
		if err := v.set.Finish(c.Context()); err != nil {
			return err
		}
		return weighStarts(c.Context(), s, *p, v.out, from)
	}
}

// isFile tells whether there is a file of that name. No target has the name of one that
// somebody keeps logs in.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// chosenBy are the options that say which starts are looked at, of logs too.
var chosenBy = []string{"slowest", "pod", "id"}

// readStarts reports the starts that logs tell of.
func readStarts(ctx context.Context, s *app, v *verb, from logfiles.Logs, merged bool) (err error) {
	p, out := *v.options.(*startup.Options), v.out
	if v.Flags().Changed("since") && !from.Journal {
		return errors.New("--since is about the journal: give --journal, too, or leave it out")
	}
	for _, name := range v.set.GivenFlags() {
		if slices.Contains(chosenBy, name) {
			continue
		}
		return option.WrongFlag(name, "it is about starts that are made, and with logs alone none is: name a target, or leave it out")
	}
	if err := s.checkFormat(out.format, startup.Name); err != nil {
		return err
	}
	from.Sorts = merged
	r, err := logfiles.Open(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if merged {
		return r.Merged(ctx, s.Out)
	}
	header, err := keptHeader(startup.Name, p)
	if err != nil {
		return err
	}
	w, path, err := s.createRecord(out.record, startup.Name, header.RunID)
	if err != nil {
		return err
	}
	tell := newProgress(s, out.quiet)
	rec, j, err := r.Record(ctx, header, logfiles.Writer{Write: w.Write, Tell: tell.line})
	tell.done()
	err = closeRecord(w, err)
	if rec == nil { // a record of nothing would stand for a measurement
		err = errors.Join(err, removeFile(path))
	}
	if err != nil {
		return err
	}
	return s.showKept([]instrument.Judged{{Record: rec, Judgement: j}}, []string{path}, out)
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
func weighStartup(ctx context.Context, s *app, p startup.Options, out outputFlags) error {
	return weighStarts(ctx, s, p, out, logfiles.Logs{})
}

// weighStarts performs a startup plan and puts what logs tell of its starts into them.
func weighStarts(ctx context.Context, s *app, p startup.Options, out outputFlags, from logfiles.Logs) (err error) {
	if p.Pod != "" || p.ID != "" {
		return errors.New("--pod and --id choose among starts in logs: give --log or --journal, too, or leave them out")
	}
	from.Files, from.Journal = append(from.Files, p.Logs...), from.Journal || p.Journal
	beside := len(from.Files) > 0 || from.Journal
	// That processes can be watched is found out by watching them: the first start has
	// what was opened for that.
	var first startuprun.Watch
	watch := func() (startuprun.Watch, error) {
		if w := first; w != nil {
			first = nil
			return w, nil
		}
		w, err := tracer.Open()
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	defer func() {
		if first != nil {
			err = errors.Join(err, first.Close())
		}
	}()
	return weigh(ctx, s, &out, weighing{
		experiment: startup.Name, engines: p.Engines, steady: true, workload: &p.Workload, cache: p.Cache,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			commands, err := startCommands(p.Commands)
			if err != nil {
				return nil, nil, err
			}
			if beside {
				if from, err = from.Mark(); err != nil {
					return nil, nil, err
				}
			}
			if first, err = watch(); err != nil {
				return nil, nil, fmt.Errorf("%w\nlogs of starts are read without: tare startup --log FILE", err)
			}
			if len(p.Targets) > 0 || len(commands) == 0 {
				targets, skipped, err = choose(ctx, s, selection{Whom: &p.Whom, workload: &p.Workload}, out.quiet)
			}
			return append(targets, commands...), skipped, err
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			o.options.Node = nodeReader()
			how := startuprun.Options{Plan: p, Options: o.options, Targets: o.targets, Workload: subject.Workload{Cargo: o.cargo}, Callers: procs.Own, Daemons: daemons, Watch: watch}
			if beside {
				how.Logs = func(ctx context.Context, watched []record.Start) (_ []record.Start, _ *record.Logs, err error) {
					r, err := logfiles.Open(ctx, from)
					if err != nil {
						return nil, nil, err
					}
					defer func() { err = errors.Join(err, r.Close()) }()
					return r.Of(ctx, watched, o.progress.line)
				}
			}
			return outcome(startuprun.Run(ctx, how))
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
