package run

import (
	"fmt"
	"time"

	"github.com/tare-bench/tare/record"
)

// Progress is where a run is.
type Progress struct {
	Round
	Rounds  int    // of the phase, as planned; more may follow for the precision; 0 outside of rounds
	Point   string // of the plan: how many at once, which job
	Target  string
	Step    string // what is done with it
	Elapsed time.Duration
	Left    time.Duration // an estimate; 0 while there is none
}

// String says it in a line, but for the times.
func (p Progress) String() string {
	text := ""
	switch {
	case p.Rounds == 0:
	case p.Phase == record.PhaseWarmup:
		text = fmt.Sprintf("warm-up %d/%d", p.Number+1, p.Rounds)
	case p.Number >= p.Rounds:
		text = fmt.Sprintf("round %d, for the precision", p.Number+1)
	default:
		text = fmt.Sprintf("round %d/%d", p.Number+1, p.Rounds)
	}
	for _, part := range []struct{ before, text string }{{", ", p.Point}, {": ", p.Target}, {" ", p.Step}} {
		if text != "" && part.text != "" {
			text += part.before
		}
		text += part.text
	}
	return text
}

// stage is where in the rounds a run is.
type stage struct {
	Round
	rounds int           // planned, of the phase
	ahead  float64       // what the turns are worth that are not done
	budget time.Duration // of the run
}

func (p *Rounds[S]) planned(phase record.Phase) int {
	if phase == record.PhaseWarmup {
		return p.Warmup
	}
	return p.Rounds
}

// ahead is what is left when i of the turns of a round are done.
func (p *Rounds[S]) ahead(at Round, turns, i int) float64 {
	rounds := max(p.planned(at.Phase)-at.Number-1, 0)
	if at.Phase == record.PhaseWarmup {
		rounds += p.Rounds
	}
	return float64(rounds*turns+turns-i)*p.Worth + p.Later
}

// Tell says what is done next.
func (r *Run[S]) Tell(point, target, step string) {
	if r.Progress == nil {
		return
	}
	p := Progress{Round: r.now.Round, Rounds: r.now.rounds, Point: point, Target: target, Step: step, Elapsed: time.Since(r.Began)}
	p.Left = min(r.takes(r.now.ahead), max(r.now.budget-p.Elapsed, 0))
	r.Progress(p)
}

// takes is an estimate of how long turns take that are worth so much, by those that were
// done; 0 while there is none.
func (r *Run[S]) takes(worth float64) time.Duration {
	if r.done == 0 {
		return 0
	}
	return time.Duration(float64(r.spent) / r.done * worth)
}
