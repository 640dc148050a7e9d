package run

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// Rounds configures the repetitions at one point of a plan.
type Rounds[S Session] struct {
	Warmup int           // warm-up rounds, not measured
	Rounds int           // measured rounds; more may be added for precision
	Budget time.Duration // since the beginning of the run; no visit starts after it

	// EachVisit allows the budget to end a round between its visits, which are long.
	EachVisit bool

	// Turns returns the turns of a round in order.
	Turns func(at Round) []Turn[S]
	// Visit performs a turn. An error ends the run.
	Visit func(ctx context.Context, t Turn[S]) error

	// Precision is the target for the widest interval, relative to the median; 0: none.
	// Widest returns the widest interval and what it belongs to, if there are enough rounds.
	Precision float64
	Widest    func() (share float64, where string)

	// Need is the number of rounds that the comparisons of a report need; 0: none.
	Need int

	Lanes int    // number of lanes for findings and machine readings; 0 if irrelevant
	On    string // place for findings: "on bind "
	Fewer string // options other than --rounds that reduce the time, for the advice in findings

	Worth float64 // weight of a turn, to estimate the time left; 0: 1
	Later float64 // weight of all turns at later points; their time is reserved when rounds are added for precision
}

// Round identifies a round. Number starts at 0 in each phase.
type Round struct {
	Phase  record.Phase
	Number int
}

// Turn is one visit of a round.
type Turn[S Session] struct {
	Round
	Order  int        // position in the round
	Target *Target[S] // nil if visits have no target
	Part   int        // index of the visit among several visits of a target, or of the point
}

// Each returns one turn for every open target.
func (r *Run[S]) Each(at Round, part int) []Turn[S] {
	turns := make([]Turn[S], len(r.Open))
	for i, t := range r.Open {
		turns[i] = Turn[S]{Round: at, Target: t, Part: part}
	}
	return turns
}

// Shuffled shuffles turns by seed and salt, so that drift affects all targets alike. The same
// seed and salt give the same order.
func Shuffled[S Session](seed, salt uint64, turns []Turn[S]) []Turn[S] {
	rand.New(rand.NewPCG(seed, salt)).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for i := range turns {
		turns[i].Order = i
	}
	return turns
}

// Reasons to end the rounds.
const (
	WhyRounds  = "rounds"
	WhyBudget  = "budget spent"
	WhyPrecise = "precision reached"
	WhyGivenUp = "every target was given up"
)

// Perform performs rounds and returns the reason why they ended, or "" if the run was
// interrupted.
func (r *Run[S]) Perform(ctx context.Context, p Rounds[S]) (why string, err error) {
	if p.Worth == 0 {
		p.Worth = 1
	}
	if p.Precision == 0 && p.Rounds < p.Need && r.Warn != nil {
		f := finding.TooFewToCompare(p.Rounds, p.Need, p.Lanes)
		if text := fmt.Sprintf("%s: %s, %.1f times as long", f.Message, f.Advice, float64(p.Need)/float64(p.Rounds)); text != r.warned {
			r.warned = text
			r.Warn(text)
		}
	}
	for i := range p.Warmup {
		if r.over(&p) || r.noneLeft() {
			break // reported by the measured rounds
		}
		if why, err = r.round(ctx, &p, Round{record.PhaseWarmup, i}); why != "" || err != nil || ctx.Err() != nil {
			return why, err
		}
	}
	for i := 0; ; i++ {
		if why, err = r.enough(&p, i); why != "" || err != nil {
			return why, err
		}
		if why, err = r.round(ctx, &p, Round{record.PhaseMeasure, i}); why != "" || err != nil || ctx.Err() != nil {
			return why, err
		}
	}
}

// Patience limits the time that a run waits for a quiet machine. After each failed wait the limit
// is halved, down to one second.
type Patience struct {
	Most time.Duration
	vain int
}

// Wait calls wait with the current limit and returns its result.
func (p *Patience) Wait(wait func(most time.Duration) bool) bool {
	done := wait(max(p.Most>>p.vain, min(p.Most, time.Second)))
	if p.vain = min(p.vain+1, 10); done {
		p.vain = 0
	}
	return done
}

// over reports whether the budget is spent.
func (r *Run[S]) over(p *Rounds[S]) bool { return time.Since(r.Began) > p.Budget }

func (r *Run[S]) noneLeft() bool {
	return len(r.Open) > 0 && !slices.ContainsFunc(r.Open, func(t *Target[S]) bool { return !t.Gone })
}

// enough returns the reason to stop after a number of rounds, or "".
func (r *Run[S]) enough(p *Rounds[S], rounds int) (why string, err error) {
	over := r.over(p)
	switch {
	case r.noneLeft():
		return WhyGivenUp, nil
	case rounds < p.Rounds && over && !p.EachVisit:
		return WhyBudget, r.budgetSpent(p, rounds == 0, fmt.Sprintf("after %d of %d rounds", rounds, p.Rounds))
	case rounds < p.Rounds:
		return "", nil
	case p.Precision == 0:
		return WhyRounds, nil
	}
	worst, where := p.Widest()
	later, kept := r.takes(p.Later), ""
	if later >= time.Second {
		kept = fmt.Sprintf(" less the %v that what follows takes", later.Round(time.Second))
	}
	switch {
	case worst <= p.Precision:
		return WhyPrecise, nil
	case time.Since(r.Began)+later > p.Budget:
		return WhyBudget, r.Finding(record.Finding{Code: finding.NotPrecise, Level: "warning", Lanes: p.Lanes,
			Message: fmt.Sprintf("±%.1f %% was not reached in %v%s (%d rounds): %s", 100*p.Precision, p.Budget, kept, rounds, widest(worst, where)),
			Advice:  "raise --budget, or ask for less: on a noisy machine an interval shrinks with the square root of the rounds"})
	}
	return "", nil
}

func widest(worst float64, where string) string {
	if math.IsInf(worst, 1) {
		return "there is no interval yet of " + where // too few rounds
	}
	return fmt.Sprintf("the widest interval is ±%.1f %%, of %s", 100*worst, where)
}

// budgetSpent records a finding that the budget was spent. It is an error if nothing was measured.
func (r *Run[S]) budgetSpent(p *Rounds[S], nothing bool, where string) error {
	level := "warning"
	if nothing {
		level = "error"
	}
	return r.Finding(record.Finding{Code: finding.Budget, Level: level, Lanes: p.Lanes,
		Message: fmt.Sprintf("the budget of %v was spent %s%s", p.Budget, p.On, where),
		Advice:  "raise --budget, or use fewer --rounds" + p.Fewer})
}

// round visits every target once, except targets that were given up.
func (r *Run[S]) round(ctx context.Context, p *Rounds[S], at Round) (why string, err error) {
	turns := p.Turns(at)
	for i, t := range turns {
		switch {
		case ctx.Err() != nil:
			return "", nil
		case t.Target != nil && t.Target.Gone:
			continue
		case p.EachVisit && r.over(p) && at.Phase == record.PhaseWarmup:
			return "", nil // reported by the measured rounds
		case p.EachVisit && r.over(p):
			return WhyBudget, r.budgetSpent(p, r.visits == 0, fmt.Sprintf("in round %d of %d", at.Number+1, p.Rounds))
		}
		began := time.Now()
		r.now = stage{at, p.planned(at.Phase), p.ahead(at, len(turns), i), p.Budget}
		if err := p.Visit(ctx, t); err != nil {
			return "", err
		}
		r.done, r.spent = r.done+p.Worth, r.spent+time.Since(began)
		if at.Phase == record.PhaseMeasure {
			r.visits++
		}
	}
	if r.Node == nil || ctx.Err() != nil {
		return "", nil
	}
	n := r.Node()
	n.Round, n.Phase, n.Lanes = at.Number, at.Phase, p.Lanes
	return "", r.Line(n)
}
