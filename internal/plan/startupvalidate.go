package plan

import (
	"slices"
	"strings"
	"unicode"
)

// What a startup may ask for. The JSON Schema states the same.
const (
	MaxCommands    = 20
	MaxCommandName = 100
	maxArguments   = 1000
	maxArgument    = 1 << 16
)

// Validate says everything that is wrong with the startup.
func (s *Startup) Validate() error { return joined(s.complaints()) }

func (s *Startup) complaints() []complaint {
	targets, names := targetsComplaints(s.Targets)
	return slices.Concat(
		targets,
		engineComplaints(s.Engines, s.Via, s.Missing),
		s.commandsComplaints(names),
		roundsComplaints(s.Rounds),
		s.watchComplaints(),
		timesComplaints(s.Budget, s.Timeout),
		limitsComplaints(s.Limits, false),
	)
}

func (s *Startup) watchComplaints() []complaint {
	var all []complaint
	if s.Warmup < 0 || s.Warmup > MaxRounds {
		all = append(all, complain("warmup", "%d is not a number of starts: from 0 to %d are allowed", s.Warmup, MaxRounds))
	}
	return all
}

func (s *Startup) commandsComplaints(names []string) []complaint {
	var all []complaint
	if len(s.Commands) > MaxCommands {
		all = append(all, complain("commands", "%d are more than the %d that are allowed", len(s.Commands), MaxCommands))
	}
	for i, c := range s.Commands {
		wrong := func(part, format string, arguments ...any) {
			all = append(all, complain("commands", format, arguments...).at(i).of(part))
		}
		switch {
		case strings.TrimSpace(c.Name) == "" || len(c.Name) > MaxCommandName || strings.ContainsFunc(c.Name, unicode.IsControl):
			wrong("name", "%s is no name: write up to %d letters, such as docker run", quote(c.Name), MaxCommandName)
		case slices.Contains(names, c.Name):
			wrong("name", "%s is there twice: each command and target needs a name of its own", quote(c.Name))
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
