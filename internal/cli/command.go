// Package cli is tare's command line: one file for each verb, which turns
// flags into a plan, makes the call and turns the outcome into an exit code.
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
	ExitFailed      = 2 // operations, phases or jobs failed, a check did, or a finding is an error
	ExitRegressed   = 3 // a gate's figure is worse
	ExitUndecided   = 4 // a gate could not decide
	ExitInterrupted = 130
)

// Streams are where a command reads and writes. Nothing below cmd/ knows the
// process's own.
type Streams struct {
	Out, Err io.Writer
	Own      bool // they are the process's, which does nothing beside
}

// Standard are the process's own streams.
func Standard() Streams {
	return Streams{Out: term.InLocale(os.Stdout, os.Getenv), Err: term.InLocale(os.Stderr, os.Getenv), Own: true}
}

// exit is an outcome that is no error of usage. Its message is printed already,
// or nothing is to be said.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// Main runs tare as a program does: the first signal that asks it to end ends
// the run in order. A second SIGINT, SIGTERM or SIGQUIT, if it is not the same
// hand's (a closed terminal sends several at once), ends the process, and tare
// clean removes what that leaves. A closed pipe ends nothing.
func Main(args []string, s Streams) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	go obey(signals, cancel)
	return Execute(ctx, args, s)
}

// repeatWindow is how close two signals are that mean one wish.
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
		return ExitUsage // nobody reads, so nobody is told
	}
	if ctx.Err() != nil {
		said, _ := strings.CutSuffix("interrupted: "+err.Error(), ": "+context.Canceled.Error())
		fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(said))
		return ExitInterrupted
	}
	fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(err.Error()))
	return ExitUsage
}

// cleanLines makes foreign text harmless and keeps its lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = term.Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n      ")
}

// app is the whole command line: the instruments it has, how they are performed,
// and where it reads and writes.
type app struct {
	Streams
	instruments instrument.List
	lines       func() *record.Lines // of all instruments
	performers  map[string]performer
	ask         func(ctx context.Context, what string) error // whether to begin what takes much; nil: yes
	fetched     []string                                     // paths, each followed by the address of what was fetched to it
}

// New builds the whole command.
func New(s Streams) *cobra.Command { return newApp(s, all.Instruments, performers).command(nil) }

func newApp(s Streams, instruments instrument.List, performers map[string]performer) *app {
	a := &app{Streams: s, instruments: instruments, performers: performers, lines: sync.OnceValue(func() *record.Lines {
		lines, err := instruments.Lines()
		if err != nil {
			panic(err) // an instrument declares a line that there can be none of
		}
		return lines
	})}
	a.ask = a.askTerminal
	return a
}

// command is the whole command, or, where the arguments begin with the name of a part,
// as much of it as that takes: to declare all options costs more than some parts do.
func (s *app) command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "Weigh container runtimes: what they cost beyond the workload",
		Long: `tare weighs container runtimes: what they cost beyond the workload itself, on the
host, on the floor that no runtime can beat, on OCI runtimes, and behind the
engines that run them. lifecycle times what starting and stopping takes, overhead
closes the books on memory and CPU, storage weighs what I/O loses and tells a
cache from a disk, import makes a record of what fio, dd and sysbench printed
earlier, startup shows where the seconds of a start go, live or from logs, bpf
weighs eBPF programs and says whose limit pays for them, app loads a service of
your own and says what a request costs, and top shows what is
there. compare sets records beside each other, gate says for a CI job whether the
new is worse, and history at which of many commits a figure changed. fleet does a
plan on every node of a Kubernetes cluster.

Targets: host (a plain process), floor (namespaces, cgroup and root made with
the kernel's own calls), runc, crun, youki, runsc, any OCI runtime as NAME=PATH,
and ENGINE/RUNTIME: docker/runc (by API), docker+cli/runc (by command),
podman/crun, containerd/runc, isula/runc, cri+NAME/HANDLER for CRI endpoints, and
kubernetes/RUNTIMECLASS for a cluster, which is weighed only when it is named.
Podman's service is docker/RUNTIME with --docker-host. An engine's name alone is its default runtime.

A flag of a list that is given again adds to the list; of any other the last counts.

Exit status: 0 done; 1 usage or environment; 2 operations, phases or jobs failed,
another finding is an error, such as lines of a record that cannot be read, or a
--check is not enough; 3 a gate or a history found something worse; 4 a
gate could not decide; 130 interrupted (what was measured is saved).`,
		Example:       "  tare doctor\n  tare lifecycle host floor --rounds 6\n  tare overhead host runc --sandboxes 1,5\n  tare storage host runc --volume bind --size 8M --jobs randread --rounds 1 --ceiling 0\n  tare import notes.txt\n  tare startup runc --rounds 2\n  tare bpf list --interval 100ms\n  tare top --once",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			if f := c.Flags().Lookup("format"); f != nil && f.Value.String() != "text" || slices.Contains([]string{"schema", "render"}, c.Name()) {
				s.Out = term.Whole(s.Out) // for programs
			}
		},
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetVersionTemplate("tare {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if wrong := new(option.FieldError); errors.As(err, &wrong) {
			return wrong // which says what to write
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
	for _, part := range parts { // which cobra sorts
		root.AddCommand(s.withBuckets(part(s)))
	}
	strict(root)
	return root
}

// takes refuses fewer arguments than least and more than most, and names them as the
// command's first line of help does.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		use, _, _ := strings.Cut(c.Use, " -")
		use, _, _ = strings.Cut(use, " | ")
		names, path := strings.Fields(use)[1:], c.CommandPath()
		of := strings.TrimPrefix(path, "tare ")
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: name %s; see %s --help", of, strings.Join(names[len(args):], " "), path)
		case len(args) > most:
			return fmt.Errorf("%s: %q is one too many; see %s --help", of, args[most], path)
		}
		return nil
	}
}

// strict has the commands that cobra makes refuse what they do not know.
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

// knownVerb refuses what is no verb of a command, with those that it is like.
func knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters that differ, as in cobra's own
	hint := "see " + c.CommandPath() + " --help"
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + c.CommandPath() + " " + strings.Join(like, " or "+c.CommandPath()+" ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", args[0], c.CommandPath(), hint)
}
