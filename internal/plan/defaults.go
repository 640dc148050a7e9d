package plan

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// Defaults returns what a lifecycle asks for when nothing is said about it.
func Defaults() Lifecycle {
	return Lifecycle{
		Targets: []string{},
		Missing: MissingFail,
		Lanes:   []int{1},
		Ops:     slices.Clone(subject.Ops),
		Rounds:  10,
		Warmup:  1,
		Budget:  10 * time.Minute,
		Timeout: time.Minute,
		Limits:  subject.DefaultLimits,
	}
}
