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
	// Commands are started beside the targets, by name: {"docker run": [docker, run, --rm, busybox, "true"]}.
	Commands []Command
	Rounds   int
	Warmup   int // starts of each target before the first round, not recorded
	// Untraced says that every round starts every target a second time without
	// watching, so that what watching costs is known.
	Untraced bool
	Budget   time.Duration
	Timeout  time.Duration // of one start
	Seed     uint64
	Limits   setting.Limits
	Workload setting.Workload // a program of the user's own in the probe's place; the zero value is none
	Ready    setting.Ready    // when a workload is ready; "": nobody asks
	Cache    terms.Cache      // what of the page cache a start finds
	// Logs, and the system's Journal, are read for what is written to them during the starts.
	// On the command line they are --log and --journal.
	Logs    []string
	Journal bool
	// Choice says which starts are drawn, listed and written into traces; without one
	// that is of each target the one closest to the median.
	Choice
}

// Choice is which starts of many are looked at.
type Choice struct {
	Pod     string // of logs: those whose pod or container has this name, with or without its namespace
	ID      string // of logs: those with an id that begins so
	Slowest int    // so many of each target, those that took longest; 0: no matter
}

// made says whether there is a choice.
func (c *Choice) made() bool { return c.Pod != "" || c.ID != "" || c.Slowest > 0 }

// has says whether a start is among those that are asked for by name.
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

// Defaults are the options of a startup that says nothing.
func Defaults() Options {
	return Options{Whom: terms.Everyone, Rounds: stat.RoundsFor(1, stat.Raw), Warmup: 1, Budget: time.Hour, Timeout: time.Minute, Limits: setting.DefaultLimits}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	option.Var(s, &o.Commands, "commands", "commands whose starts are watched", option.ListOf(option.Fields("a command", Command{})), option.OmitEmpty)
	terms.Rounds(s, &o.Rounds, "watched starts of each target")
	option.Int(s, &o.Warmup, "warmup", "starts of each target before, not recorded", option.Bounds(0, terms.MaxRounds, "a number of starts"))
	option.Bool(s, &o.Untraced, "untraced", "start everything a second time in every round without watching, to see what watching costs", option.OmitEmpty)
	terms.Budget(s, &o.Budget, "round")
	terms.Timeout(s, &o.Timeout, "for one start")
	terms.Seed(s, &o.Seed, "targets")
	terms.Limits(s, &o.Limits, false, "those of tare lifecycle")
	terms.Workload(s, &o.Whom, &o.Workload)
	terms.Ready(s, &o.Ready)
	terms.DeclareCache(s, &o.Cache, "start")
	option.Var(s, &o.Logs, "log", "logs, or folders of logs: what is written to them during a start is in it", option.OneOrMore(option.Word), option.NoFlag, option.OmitEmpty)
	option.Bool(s, &o.Journal, "journal", "the system's journal (journalctl), as log", option.NoFlag, option.OmitEmpty)
	option.Int(s, &o.Slowest, "slowest", "so many starts of each target are drawn, listed and traced, those that took longest (default: the one closest to the median)", option.Bounds(0, maxWhole, "a number of starts"), option.OmitEmpty)
	option.Text(s, &o.Pod, "pod", "of logs: only starts of this pod, with or without its namespace", option.OmitEmpty)
	option.Text(s, &o.ID, "id", "of logs: only starts with an id that begins so", option.OmitEmpty)
}

// Declare declares the fields of a command.
func (c *Command) Declare(s *option.Set) {
	option.Text(s, &c.Name, "name", "what it is called in reports")
	option.Var(s, &c.Args, "args", "the program and its arguments", option.ListOf(option.Word))
}

// Wrong says what is wrong between options.
func (o *Options) Wrong() option.FieldErrors {
	all, names := o.CheckWhom()
	all = append(all, terms.CheckWorkload(&o.Workload)...)
	if len(o.Commands) > MaxCommands {
		all = append(all, option.Wrongf("commands", "%d are more than the %d that are allowed", len(o.Commands), MaxCommands))
	}
	for i, c := range o.Commands {
		wrong := func(part, format string, arguments ...any) {
			all = append(all, option.Wrongf("commands", format, arguments...).At(i).Of(part))
		}
		switch {
		case strings.TrimSpace(c.Name) == "" || len(c.Name) > MaxCommandName || strings.ContainsFunc(c.Name, unicode.IsControl):
			wrong("name", "%s is no name: write up to %d letters, such as docker run", option.Quote(c.Name), MaxCommandName)
		case slices.Contains(names, c.Name):
			wrong("name", "%s is there twice: each command and target needs a name of its own", option.Quote(c.Name))
		}
		names = append(slices.Clip(names), c.Name)
		if len(c.Args) == 0 || c.Args[0] == "" || len(c.Args) > maxArguments {
			wrong("args", "write the command and its arguments, such as [docker, run, --rm, busybox, \"true\"]")
		}
		if slices.ContainsFunc(c.Args, func(a string) bool { return len(a) > maxArgument || strings.ContainsRune(a, 0) }) {
			wrong("args", "an argument is no text of up to 64 KiB")
		}
	}
	return all
}

// Ahead is what it takes: how long starts last is the question.
func (o *Options) Ahead(int) terms.Ahead { return terms.Ahead{Budget: o.Budget} }

// MarshalJSON writes what a record holds.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
