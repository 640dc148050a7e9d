// Package startup measures where the time of a start goes.
package startup

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Limits of the options.
const (
	MaxCommands    = 20
	MaxCommandName = 100
	maxArguments   = 1000
	maxArgument    = 1 << 16
)

// Options are the options of a startup measurement.
type Options struct {
	Title string
	terms.Whom
	// Commands are started in the same rounds as the targets, by name: {"docker run":
	// [docker, run, --rm, busybox, "true"]}.
	Commands []Command
	Rounds   int
	Warmup   int // starts of each target before the first round, not recorded
	// Untraced repeats every start of a round without watching, to measure the overhead of
	// watching.
	Untraced bool
	Budget   time.Duration
	Timeout  time.Duration // of one start
	Seed     uint64
	Limits   setting.Limits
	Workload setting.Workload // the user's program instead of the probe; the zero value means the probe
	Ready    setting.Ready    // when a workload is ready; "": not polled
	Cache    terms.Cache      // state of the page cache before a start
	// Logs are files whose new lines during the starts are read. Journal also reads the
	// system's journal. The flags are --log and --journal.
	Logs    []string
	Journal bool
	// Choice selects the starts to draw, list and write into traces. The default is the
	// start closest to the median, for each target.
	Choice
}

// Choice selects some of many starts.
type Choice struct {
	Pod     string // logs only: name of the pod or container, with or without its namespace
	ID      string // logs only: prefix of an id of the start
	Slowest int    // number of slowest starts of each target; 0: not selected by duration
}

// made reports whether a choice was made.
func (c *Choice) made() bool { return c.Pod != "" || c.ID != "" || c.Slowest > 0 }

// has reports whether a start matches the requested pod and id.
func (c *Choice) has(s *record.Start) bool {
	if c.Pod != "" && s.Name != c.Pod && !strings.HasSuffix(s.Name, "/"+c.Pod) {
		return false
	}
	return c.ID == "" || strings.HasPrefix(s.Sandbox, c.ID) || slices.ContainsFunc(s.Containers, func(id string) bool { return strings.HasPrefix(id, c.ID) })
}

// Command is a command whose start is watched.
type Command struct {
	Name string   `json:"name"`
	Args []string `json:"args"`
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{Whom: terms.Everyone, Rounds: stat.RoundsFor(1, stat.Raw), Warmup: 1, Budget: time.Hour, Timeout: time.Minute, Limits: setting.DefaultLimits}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	option.Var(s, &o.Commands, "commands", "commands to start and watch", option.ListOf(option.Fields("a command", Command{})), option.OmitEmpty)
	terms.Rounds(s, &o.Rounds, "watched starts of each target")
	option.Int(s, &o.Warmup, "warmup", "warm-up starts of each target, not recorded", option.Bounds(0, terms.MaxRounds, "a number of starts"))
	option.Bool(s, &o.Untraced, "untraced", "repeat every start of a round without watching, to measure the overhead of watching", option.OmitEmpty)
	terms.Budget(s, &o.Budget, "round")
	terms.Timeout(s, &o.Timeout, "for one start")
	terms.Seed(s, &o.Seed, "targets")
	terms.Limits(s, &o.Limits, false, "those of tare lifecycle")
	terms.Workload(s, &o.Whom, &o.Workload)
	terms.Ready(s, &o.Ready)
	terms.DeclareCache(s, &o.Cache, "start")
	option.Var(s, &o.Logs, "log", "logs or folders of logs; lines written during a start are part of it", option.OneOrMore(option.Word), option.NoFlag, option.OmitEmpty)
	option.Bool(s, &o.Journal, "journal", "read the system's journal (journalctl) as a log", option.NoFlag, option.OmitEmpty)
	option.Int(s, &o.Slowest, "slowest", "number of slowest starts of each target to draw, list and trace (default: only the start closest to the median)", option.Bounds(0, maxWhole, "a number of starts"), option.OmitEmpty)
	option.Text(s, &o.Pod, "pod", "logs only: starts of this pod, with or without its namespace", option.OmitEmpty)
	option.Text(s, &o.ID, "id", "logs only: starts with an id that has this prefix", option.OmitEmpty)
}

// Declare declares the fields of a command.
func (c *Command) Declare(s *option.Set) {
	option.Text(s, &c.Name, "name", "name in reports")
	option.Var(s, &c.Args, "args", "the program and its arguments", option.ListOf(option.Word))
}

// Wrong returns the errors of options that depend on each other.
func (o *Options) Wrong() option.FieldErrors {
	all, names := o.CheckWhom()
	all = append(all, terms.CheckWorkload(&o.Workload)...)
	if len(o.Commands) > MaxCommands {
		all = append(all, option.Wrongf("commands", "too many commands: %d (maximum %d)", len(o.Commands), MaxCommands))
	}
	for i, c := range o.Commands {
		wrong := func(part, format string, arguments ...any) {
			all = append(all, option.Wrongf("commands", format, arguments...).At(i).Of(part))
		}
		switch {
		case strings.TrimSpace(c.Name) == "" || len(c.Name) > MaxCommandName || strings.ContainsFunc(c.Name, unicode.IsControl):
			wrong("name", "invalid name %s: use at most %d characters, such as docker run", option.Quote(c.Name), MaxCommandName)
		case slices.Contains(names, c.Name):
			wrong("name", "duplicate name %s: commands and targets need distinct names", option.Quote(c.Name))
		}
		names = append(slices.Clip(names), c.Name)
		if len(c.Args) == 0 || c.Args[0] == "" || len(c.Args) > maxArguments {
			wrong("args", "write the command and its arguments, such as [docker, run, --rm, busybox, \"true\"]")
		}
		if slices.ContainsFunc(c.Args, func(a string) bool { return len(a) > maxArgument || strings.ContainsRune(a, 0) }) {
			wrong("args", "invalid argument: use text of at most 64 KiB")
		}
	}
	return all
}

// Ahead returns the expected duration. Only the budget is known, since the duration of
// a start is what is measured.
func (o *Options) Ahead(int) terms.Ahead { return terms.Ahead{Budget: o.Budget} }

// MarshalJSON encodes the options as in a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
