package run

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/record"
)

// Level is how much the node has left of one resource, in bytes or tasks.
type Level struct {
	Name  string
	Left  int64
	Total int64
	Floor int64 // that is never touched
	Least int64 // what one sandbox takes at the very least: below it a cost is noise
}

// Node is what the guard looks at.
type Node interface {
	// Levels reads every resource that is known. Memory is the first.
	Levels() ([]Level, error)
}

// guard foresees what the next sandboxes take of a node, and says how many may be begun.
//
// What one more takes at most is the largest of: what one of the latest starts took, what
// those of the latest bursts took on average once it had been waited for what falls late,
// and what all did or were charged for, with what the node wavered by meanwhile: while others
// give memory back, the node tells of too little. Above the floor a spare is kept, for what cannot be foreseen: three
// such sandboxes, or twice what a start took while it was under way, or an eighth of the
// floor and no more than a quarter of what was above it, whichever is most. So a cost that jumps to four times the most that was ever
// seen does not touch the floor.
type guard struct {
	there  int // sandboxes
	rooms  []*watched
	byName map[string]*watched
}

// watched is one resource under guard.
type watched struct {
	Level
	record.Room
	prior  float64   // what one took in the trial
	single []float64 // what each of the latest starts took
	bursts []float64 // what one took on average in each of the latest bursts
	dips   []float64 // what was missing while a start was under way
	wavers []float64 // what changed though nothing was started, or came back though something was
	has    float64   // what one had by itself, by its own processes and cgroups, when it was last read
	waited Level     // when it was last waited for what falls late
	at     int       // sandboxes there then
}

// How many of the latest are remembered: what others do to the node ages out.
const (
	latestStarts = 16
	latestBursts = 4
)

// newGuard begins with a node without sandboxes of the target, and with what a trial
// learnt; nil where there was none.
func newGuard(before []Level, trial *guard) *guard {
	g := &guard{byName: map[string]*watched{}}
	for _, l := range before {
		w := &watched{Level: l, waited: l}
		w.Room = record.Room{Name: l.Name, Total: l.Total, Before: l.Left, Least: l.Left, Floor: l.Floor}
		if trial != nil && trial.byName[l.Name] != nil {
			w.prior = trial.byName[l.Name].each()
		}
		g.rooms, g.byName[l.Name] = append(g.rooms, w), w
	}
	return g
}

// look takes over what is left now.
func (g *guard) look(levels []Level) {
	for _, l := range levels {
		if w := g.byName[l.Name]; w != nil {
			w.Level = l
			w.Room.Least = min(w.Room.Least, l.Left)
		}
	}
}

// started learns from n more sandboxes: what was left before them, at least while they
// were being started, and after.
func (g *guard) started(n int, before, least, after []Level) {
	g.there += n
	g.look(least)
	g.look(after)
	for _, w := range g.rooms {
		b, l, a := left(before, w.Level.Name), left(least, w.Level.Name), left(after, w.Level.Name)
		w.single = latest(w.single, latestStarts, float64(b-a)/float64(max(n, 1)))
		w.dips = latest(w.dips, latestStarts, float64(b-min(l, a)))
		w.wavers = latest(w.wavers, latestStarts, float64(a-b))
	}
}

// waitedFor learns from what is left once it was waited for what falls late.
func (g *guard) waitedFor(levels []Level) {
	g.look(levels)
	for _, w := range g.rooms {
		if n := g.there - w.at; n > 0 {
			w.bursts = latest(w.bursts, latestBursts, float64(w.waited.Left-w.Level.Left)/float64(n))
			w.wavers = latest(w.wavers, latestStarts, float64(w.Level.Left-w.waited.Left))
		}
		w.waited, w.at = w.Level, g.there
	}
}

// held learns from a time in which nothing was started, and from what one sandbox then had
// of memory by itself.
func (g *guard) held(before, after []Level, has float64) {
	g.look(after)
	for _, w := range g.rooms {
		change := left(after, w.Level.Name) - left(before, w.Level.Name)
		w.wavers = latest(w.wavers, latestStarts, float64(max(change, -change)))
	}
	if has > 0 { // else it could not be read, and what it had before stands
		g.byName[density.Memory].has = has
	}
}

func latest(all []float64, most int, v float64) []float64 {
	all = append(all, v)
	return all[max(0, len(all)-most):]
}

func left(levels []Level, name string) int64 {
	i := slices.IndexFunc(levels, func(l Level) bool { return l.Name == name })
	if i < 0 {
		return 0
	}
	return levels[i].Left
}

// each is what one more sandbox takes at most.
func (w *watched) each() float64 {
	most := float64(w.Level.Least)
	if w.at > 0 {
		wavers := 0.0
		if len(w.wavers) > 0 {
			wavers = max(slices.Max(w.wavers), 0)
		}
		most = max(most, max(float64(w.Before-w.waited.Left)/float64(w.at), w.has)+wavers/float64(w.at))
	} else {
		most = max(most, w.prior)
	}
	for _, all := range [][]float64{w.single, w.bursts} {
		if len(all) > 0 {
			most = max(most, slices.Max(all))
		}
	}
	return most
}

// spare is what is kept above the floor.
func (w *watched) spare() float64 {
	dip := 0.0
	if len(w.dips) > 0 {
		dip = slices.Max(w.dips)
	}
	return max(3*w.each(), 2*dip, min(float64(w.Level.Floor)/8, float64(w.Before-w.Level.Floor)/4))
}

// expected is what is left once all sandboxes that are there have taken what they take:
// those that were started since it was last waited may not have.
func (g *guard) expected(w *watched) float64 {
	late := float64(w.waited.Left) - float64(g.there-w.at)*w.each()
	return min(float64(w.Level.Left), late)
}

// fits is how many more sandboxes may be begun, and which resource bounds that.
func (g *guard) fits() (n int, by string) {
	n = math.MaxInt32
	for _, w := range g.rooms {
		room := (g.expected(w) - float64(w.Level.Floor) - w.spare()) / w.each()
		if fit := int(max(math.Floor(room), 0)); fit < n {
			n, by = fit, w.Level.Name
		}
	}
	return n, by
}

// tripped is the first resource of which the floor was touched, "" for none.
func tripped(levels []Level) string {
	for _, l := range levels {
		if l.Left < l.Floor {
			return l.Name
		}
	}
	return ""
}

// lost is how much memory went though nothing was started, where that matters: where it is
// more than what is kept for what cannot be foreseen, and would take all that may still be
// taken if it went on for a few times as long. Else 0.
func (g *guard) lost(before, after []Level) int64 {
	w := g.byName[density.Memory]
	gone := left(before, density.Memory) - left(after, density.Memory)
	if may := left(after, density.Memory) - w.Level.Floor; float64(gone) <= w.spare() || fewTimes*gone < may {
		return 0
	}
	return gone
}

const fewTimes = 4

// said are the rooms as a record has them.
func (g *guard) said() (all []record.Room) {
	for _, w := range g.rooms {
		r := w.Room
		r.Spare, r.Each = int64(w.spare()), int64(math.Ceil(w.each()))
		all = append(all, r)
	}
	return all
}

// because says why a resource lets no more be begun.
func (g *guard) because(name string) string {
	w := g.byName[name]
	if w == nil {
		return ""
	}
	return fmt.Sprintf("of %s %s are left, and one more sandbox may take %s: %s are never touched, and %s are kept above that for what cannot be foreseen",
		name, amount(name, g.expected(w)), amount(name, w.each()), amount(name, float64(w.Level.Floor)), amount(name, w.spare()))
}

// amount is so much of a resource in words.
func amount(name string, v float64) string {
	if isCount(name) {
		return page.Count(math.Ceil(v))
	}
	return page.Memory(v)
}
