// Package cli is tare's command line. Each verb has a file: it turns flags into a plan,
// runs it and turns the outcome into an exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
)

// Exit codes, the same for every verb.
const (
	ExitDone        = 0
	ExitUsage       = 1 // usage or environment
	ExitFailed      = 2 // failed operations, phases, jobs or checks, or a finding with level error
	ExitRegressed   = 3 // a gated figure is worse
	ExitUndecided   = 4 // a gate has no verdict
	ExitInterrupted = 130
)

// Streams are the input and output of a command. Only cmd/ uses the streams of the process.
type Streams struct {
	Out, Err io.Writer
	Own      bool // the streams are those of the process, which runs nothing else
}

// Standard returns the streams of the process.
func Standard() Streams {
	return Streams{Out: term.InLocale(os.Stdout, os.Getenv), Err: term.InLocale(os.Stderr, os.Getenv), Own: true}
}

// exit is an outcome other than a usage error. Its message has been printed already, or
// there is none.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// Main runs tare as a program. The first signal ends the run in order. A second SIGINT,
// SIGTERM or SIGQUIT exits at once, and tare clean removes the leftovers. Signals within
// repeatWindow count as one, since closing a terminal sends several. SIGPIPE is ignored.
func Main(args []string, s Streams) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	go obey(signals, cancel)
	return Execute(ctx, args, s)
}

// repeatWindow is the interval in which several signals count as one.
const repeatWindow = 500 * time.Millisecond

func obey(signals <-chan os.Signal, cancel func()) {
	var first time.Time
	for sig := range signals {
		switch {
		case sig == unix.SIGPIPE:
		case first.IsZero():
			first = time.Now()
			cancel()
		case sig != unix.SIGHUP && time.Since(first) > repeatWindow:
			os.Exit(ExitInterrupted)
		}
	}
}

// Execute runs tare with the given arguments and returns its exit code.
func Execute(ctx context.Context, args []string, s Streams) int {
	root := newApp(s, all.Instruments, performers).command(args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exit
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &code):
		return code.code
	}
	if errors.Is(err, unix.EPIPE) {
		return ExitUsage // EPIPE: the reader is gone
	}
	if ctx.Err() != nil {
		said, _ := strings.CutSuffix("interrupted: "+err.Error(), ": "+context.Canceled.Error())
		fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(said))
		return ExitInterrupted
	}
	fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(err.Error()))
	return ExitUsage
}

// cleanLines escapes control characters in untrusted text and keeps its line breaks.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = term.Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n      ")
}

// app is the command line: its instruments, how to run them, and its streams.
type app struct {
	Streams
	instruments instrument.List
	lines       func() *record.Lines // of all instruments
	performers  map[string]performer
	ask         func(ctx context.Context, what string) error // asks before an expensive plan; nil: no question
	fetched     []string                                     // local path and source address, alternating
}

// New returns the root command.
func New(s Streams) *cobra.Command { return newApp(s, all.Instruments, performers).command(nil) }

func newApp(s Streams, instruments instrument.List, performers map[string]performer) *app {
	a := &app{Streams: s, instruments: instruments, performers: performers, lines: sync.OnceValue(func() *record.Lines {
		lines, err := instruments.Lines()
		if err != nil {
			panic(err) // an instrument declares an invalid line
		}
		return lines
	})}
	a.ask = a.askTerminal
	return a
}

// command returns the whole command tree, or only the subcommand that args name. Declaring
// all options costs more than some subcommands do.
func (s *app) command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "Measure what container runtimes cost beyond the workload",
		Long: `tare measures what container runtimes cost beyond the workload itself: on the host, on
the floor that no runtime can beat, on OCI runtimes, and behind the engines that run
them. lifecycle times how long containers take to start and stop. overhead accounts for
memory and CPU. storage measures I/O losses and separates cache from disk. import converts
the output of fio, dd and sysbench to a record. startup shows where the time of a start
goes, live or from logs. bpf measures eBPF programs and which limit their cost counts
against. app loads a service of your own and reports the cost per request. top shows
running containers. compare compares records, gate decides for a CI job whether a change
is worse, and history finds the commit that changed a figure. fleet runs a plan on every
node of a Kubernetes cluster.

Targets: host (a plain process), floor (namespaces, cgroup and root made with
the kernel's own calls), runc, crun, youki, runsc, any OCI runtime as NAME=PATH,
and ENGINE/RUNTIME: docker/runc (by API), docker+cli/runc (by command),
podman/crun, containerd/runc, isula/runc, cri+NAME/HANDLER for CRI endpoints, and
kubernetes/RUNTIMECLASS for a cluster, which is measured only if named.
Podman's service is docker/RUNTIME with --docker-host. An engine's name alone is its default runtime.

List flags may be repeated; for other flags the last one wins.

Exit status: 0 done; 1 usage or environment error; 2 failed operations, phases or jobs,
a finding with level error such as unreadable record lines, or a --check that is too
small; 3 a gate or a history found a regression; 4 a gate has no verdict; 130
interrupted (what was measured is saved).`,
		Example:       "  tare doctor\n  tare lifecycle host floor --rounds 6\n  tare overhead host runc --sandboxes 1,5\n  tare storage host runc --volume bind --size 8M --jobs randread --rounds 1 --ceiling 0\n  tare import notes.txt\n  tare startup runc --rounds 2\n  tare bpf list --interval 100ms\n  tare top --once",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			if f := c.Flags().Lookup("format"); f != nil && f.Value.String() != "text" || slices.Contains([]string{"schema", "render"}, c.Name()) {
				s.Out = term.Whole(s.Out) // output for programs
			}
		},
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetVersionTemplate("tare {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if wrong := new(option.FieldError); errors.As(err, &wrong) {
			return wrong // it already says what to write
		}
		like := ""
		if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
			var known []string
			c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
			like = term.Like("--"+unknown.GetSpecifiedName(), known)
		}
		return fmt.Errorf("%w%s; see %s --help", err, like, c.CommandPath())
	})
	parts := map[string]func(*app) *cobra.Command{
		"compare": newCompare, "gate": newGate, "history": newHistory, "run": newRun, "import": newImport, "records": newRecords, "schema": newSchema, "report": newReport, "serve": newServe, "label": newLabel, "redact": newRedact, "join": newJoin, "image": newImage, "top": newTop, "doctor": newDoctor, "fleet": newFleet, "clean": newClean, "version": newVersion,
	}
	for i := range s.instruments {
		parts[s.instruments[i].Name] = func(s *app) *cobra.Command { return newVerb(s, &s.instruments[i]) }
	}
	if len(args) > 0 && parts[args[0]] != nil {
		root.AddCommand(s.withBuckets(parts[args[0]](s)))
		return root
	}
	for _, part := range parts { // cobra sorts them
		root.AddCommand(s.withBuckets(part(s)))
	}
	strict(root)
	return root
}

// takes checks the number of arguments. Its errors use the names in the command's usage
// line.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		use, _, _ := strings.Cut(c.Use, " -")
		use, _, _ = strings.Cut(use, " | ")
		names, path := strings.Fields(use)[1:], c.CommandPath()
		of := strings.TrimPrefix(path, "tare ")
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: missing argument %s; see %s --help", of, strings.Join(names[len(args):], " "), path)
		case len(args) > most:
			return fmt.Errorf("%s: unexpected argument %q; see %s --help", of, args[most], path)
		}
		return nil
	}
}

// strict makes cobra's own commands reject unknown arguments.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = knownVerb, func(c *cobra.Command, _ []string) error { return c.Help() }
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err == nil && of.HasSubCommands() {
					err = knownVerb(of, rest)
				}
				return err
			}
		}
	}
}

// knownVerb rejects an unknown subcommand and suggests similar ones.
func knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // edit distance, as cobra's default
	hint := "see " + c.CommandPath() + " --help"
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + c.CommandPath() + " " + strings.Join(like, " or "+c.CommandPath()+" ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", args[0], c.CommandPath(), hint)
}
