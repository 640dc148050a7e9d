package run

import (
	"fmt"
	"time"

	"github.com/tare-bench/tare/record"
)

// Progress is the state of a run.
type Progress struct {
	Round
	Rounds  int    // planned rounds of the phase, without those added for precision; 0 outside of rounds
	Point   string // point of the plan, such as the number of lanes or the job
	Target  string
	Step    string // step of the visit
	Elapsed time.Duration
	Left    time.Duration // estimated time left; 0 if unknown
}

// String formats the progress as one line without times.
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

// stage is the position of a run within its rounds.
type stage struct {
	Round
	rounds int           // planned rounds of the phase
	ahead  float64       // weight of the remaining turns
	budget time.Duration // time budget of the run
}

func (p *Rounds[S]) planned(phase record.Phase) int {
	if phase == record.PhaseWarmup {
		return p.Warmup
	}
	return p.Rounds
}

// ahead returns the weight of the remaining turns after i turns of a round.
func (p *Rounds[S]) ahead(at Round, turns, i int) float64 {
	rounds := max(p.planned(at.Phase)-at.Number-1, 0)
	if at.Phase == record.PhaseWarmup {
		rounds += p.Rounds
	}
	return float64(rounds*turns+turns-i)*p.Worth + p.Later
}

// Step reports the next step to Progress.
func (r *Run[S]) Step(point, target, step string) {
	if r.Progress == nil {
		return
	}
	p := Progress{Round: r.now.Round, Rounds: r.now.rounds, Point: point, Target: target, Step: step, Elapsed: time.Since(r.Began)}
	p.Left = min(r.takes(r.now.ahead), max(r.now.budget-p.Elapsed, 0))
	r.Progress(p)
}

// takes estimates the duration of turns with a total weight from past turns. It returns 0 if
// there are none.
func (r *Run[S]) takes(worth float64) time.Duration {
	if r.done == 0 {
		return 0
	}
	return time.Duration(float64(r.spent) / r.done * worth)
}
