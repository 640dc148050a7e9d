package plan

import (
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// Startup asks where the seconds of a start go.
type Startup struct {
	Title   string   `json:"title,omitempty" yaml:"title"`
	Targets []string `json:"targets" yaml:"targets"` // as of Lifecycle
	Missing Missing  `json:"missing,omitempty" yaml:"missing"`
	Via     []string `json:"via,omitempty" yaml:"via"`
	Engines Engines  `json:"engines,omitempty" yaml:"engines"`
	// Commands are started beside the targets, by name: {"docker run": [docker, run, --rm, busybox, "true"]}.
	Commands []StartCommand `json:"commands,omitempty" yaml:"commands"`
	Rounds   int            `json:"rounds" yaml:"rounds"`
	Warmup   int            `json:"warmup" yaml:"warmup"` // starts of each target before the first round, not recorded
	// Untraced says that every round starts every target a second time without
	// watching, so that what watching costs is known.
	Untraced bool           `json:"untraced,omitempty" yaml:"untraced"`
	Budget   time.Duration  `json:"budget" yaml:"budget"`
	Timeout  time.Duration  `json:"timeout" yaml:"timeout"` // of one start
	Seed     uint64         `json:"seed" yaml:"seed"`
	Limits   subject.Limits `json:"limits" yaml:"limits"`
}

// StartCommand is a command whose start is watched.
type StartCommand struct {
	Name string   `json:"name" yaml:"name"`
	Args []string `json:"args" yaml:"args"`
}

// DefaultsOfStartup are the settings of a startup plan that says nothing.
func DefaultsOfStartup() Startup {
	return Startup{
		Targets: []string{}, Missing: MissingFail, Rounds: 5, Warmup: 1,
		Budget: time.Hour, Timeout: time.Minute, Limits: subject.DefaultLimits,
	}
}
