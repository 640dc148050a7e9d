// Package perform connects the run of an instrument to its caller. An instrument's run/
// describes a measurement as a [Measure]. The caller chooses the targets, makes the folders and
// the record, runs the measurement in a [Session], and shows the report.
package perform

import (
	"context"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Measure describes a measurement to its caller.
type Measure struct {
	Plan       option.Options     // set by [By]
	Steady     bool               // call lane.Settle first and read the node between rounds, because times are short
	Metered    bool               // attribute memory and CPU time to processes
	Lanes      int                // maximum number of lanes at once
	Workload   *setting.Workload  // workload of the targets; nil or empty: the probe
	Neighbours []setting.Workload // images of neighbours
	Cache      terms.Cache        // state of the page cache before each timed operation
	Named      []*string          // other options with a target's name; cleared if that target is unavailable
	Commands   []subject.Target   // targets in addition to those of the plan
	// Check is called before the targets are found. Suits checks the targets; skipped reports
	// whether others are unavailable. Both may be nil.
	Check func() error
	Suits func(targets []subject.Target, skipped bool) error
	Run   func(*Session) (*record.Record, instrument.Judgement, error)
}

// Session is an opened measurement: its folders, its record, and what it measures.
type Session struct {
	run.Options
	Targets      []subject.Target
	Meter        *snapshot.Reader                           // nil unless Metered
	Workload     subject.Workload                           // the user's own program, or the probe
	Neighbours   []subject.Workload                         // of neighbours with images
	FolderBelow  func(below string) (dir string, err error) // makes a folder of the run below one of the user
	ShowProgress func(what string, elapsed, left time.Duration)
}

// Weigh performs a measurement from its checks to its report.
type Weigh func(context.Context, *Measure) error

// Func performs a plan.
type Func func(ctx context.Context, plan option.Options, weigh Weigh) error

// By adapts a function for one type of options. The function may change its copy of them.
func By[O any, P interface {
	*O
	option.Options
}](perform func(context.Context, P, Weigh) error) Func {
	return func(ctx context.Context, plan option.Options, weigh Weigh) error {
		own := *plan.(P)
		return perform(ctx, &own, func(ctx context.Context, m *Measure) error {
			m.Plan = P(&own)
			return weigh(ctx, m)
		})
	}
}

// Outcome returns the outcome of an instrument's run. The judgement is nil if there is none.
func Outcome[J any, P interface {
	*J
	instrument.Judgement
}](rec *record.Record, j P, err error) (*record.Record, instrument.Judgement, error) {
	if j == nil {
		return rec, nil, err
	}
	return rec, j, err
}

// Absent is the reason why a measurement has no available target on this machine.
type Absent struct{ error }

// Missing returns an error as an [Absent].
func Missing(err error) error { return &Absent{err} }

func (e *Absent) Unwrap() error { return e.error }

// OnThisNode rejects pods that run on other machines.
func OnThisNode(targets []subject.Target) error {
	for _, t := range targets {
		if info := t.Info(); info.Kubernetes != nil && info.Kubernetes.Allocatable == nil {
			return fmt.Errorf("target %s: its pods run on other machines, and their memory can only be read there: run this as root on a node of the cluster (--node names it), or on all nodes with tare fleet run PLAN --nodes SELECTOR", info.Name)
		}
	}
	return nil
}
