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
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// extendStartup adds arbitrary commands and logs to the verb.
func extendStartup(s *app, v *verb) {
	p := v.options.(*startup.Options)
	var from logfiles.Logs
	f := v.Flags()
	f.StringArrayVar(&from.Files, "log", nil, "log to read, or a folder of logs, - for standard input; gzip, zstd, bzip2 and xz are decompressed; can be repeated. With a target or a command, new log lines are added to its starts; otherwise nothing is started")
	f.BoolVar(&from.Journal, "journal", false, "read the system's journal (journalctl), like --log")
	f.StringVar(&from.Since, "since", "", "with --journal: start of the period, as in journalctl (default: this boot)")
	zone := f.String("timezone", "", "with --log: time zone of timestamps without one, such as Europe/Berlin or Local (default: UTC, unless the log itself shows it)")
	merged := f.Bool("merged", false, "with --log or --journal: only print the lines of all logs in order of time, with the time between them")
	v.Use += " [-- COMMAND [ARGUMENT...]]"
	v.RunE = func(c *cobra.Command, args []string) error {
		if dash := c.ArgsLenAtDash(); dash >= 0 {
			asked := args[dash:]
			if args = args[:dash]; len(asked) == 0 {
				return errors.New("missing command after --, such as tare startup -- docker run --rm busybox true")
			}
			p.Commands = []startup.Command{{Name: nameOfCommand(asked), Args: asked}}
		}
		var err error
		if from.Zone, err = time.LoadLocation(*zone); err != nil {
			return fmt.Errorf("invalid --timezone %q: write a name such as Europe/Berlin, Local or UTC", *zone)
		}
		reads := len(from.Files) > 0 || from.Journal || f.Changed("since")
		if reads { // for --log *.log: the shell passes the other files as arguments
			files := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isFile(arg) })
			args = slices.DeleteFunc(args, isFile)
			from.Files = append(from.Files, files...)
		}
		switch beside := len(args)+len(p.Commands) > 0; {
		case reads && !beside:
			return readStarts(c.Context(), s, v, from, *merged)
		case *merged:
			return errors.New("--merged only prints log lines: use it with --log or --journal, without a target or a command")
		case f.Changed("since"):
			return errors.New("--since needs the journal without a target: with a target, the journal is read from the start of the run")
		}
		_, take := v.set.Arguments()
		take(args)
		if err := v.set.Finish(c.Context()); err != nil {
			return err
		}
		return perform.By(func(ctx context.Context, p *startup.Options, weigh perform.Weigh) error {
			return startuprun.PerformWith(ctx, p, weigh, from)
		})(c.Context(), p, s.weigher(startup.Name, v.out))
	}
}

// isFile reports whether name is an existing file. Targets do not have the names of log
// files.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// chosenBy are the options that select starts, also in logs.
var chosenBy = []string{"slowest", "pod", "id"}

// readStarts reports the starts found in logs.
func readStarts(ctx context.Context, s *app, v *verb, from logfiles.Logs, merged bool) (err error) {
	p, out := *v.options.(*startup.Options), v.out
	if v.Flags().Changed("since") && !from.Journal {
		return errors.New("--since needs --journal: add it, or omit --since")
	}
	for _, name := range v.set.GivenFlags() {
		if slices.Contains(chosenBy, name) {
			continue
		}
		return option.WrongFlag(name, "it needs a start, and logs alone start nothing: add a target, or omit it")
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
	rec, j, err := r.Record(ctx, header, logfiles.Writer{Write: w.Write, Progress: tell.line})
	tell.done()
	err = closeRecord(w, err)
	if rec == nil { // do not keep an empty record
		err = errors.Join(err, removeFile(path))
	}
	if err != nil {
		return err
	}
	return s.showKept([]instrument.Judged{{Record: rec, Judgement: j}}, []string{path}, out)
}

// nameOfCommand returns the name of a command in reports: its program and its first
// argument, unless that is a flag.
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

// watchCheck reports whether starts can be traced here.
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
