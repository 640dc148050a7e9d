package run

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/record"
)

// Level is the remaining amount of one resource of the node, in bytes or tasks.
type Level struct {
	Name  string
	Left  int64
	Total int64
	Floor int64 // reserve that must not be used
	Least int64 // minimum cost of a sandbox; smaller costs are noise
}

// Node reads the resources of the machine.
type Node interface {
	// Levels returns every known resource, memory first.
	Levels() ([]Level, error)
}

// guard predicts the cost of further sandboxes and limits how many may start.
//
// The cost of one more sandbox is the largest of these:
//   - the cost of one of the latest starts;
//   - the average cost of the latest bursts, after late usage has appeared;
//   - the average growth or charge of all, plus the node's fluctuation, because the
//     node shows too little usage while other processes free memory.
//
// A spare is kept above the floor for unforeseen usage. It is the largest of three
// such sandboxes, twice the peak usage during a start, and an eighth of the floor, but
// at most a quarter of the initial amount above the floor. So even a cost of four
// times the maximum seen does not reach the floor.
type guard struct {
	there  int // sandboxes
	rooms  []*watched
	byName map[string]*watched
}

// watched is the state of one guarded resource.
type watched struct {
	Level
	before, least int64 // amounts left before the first sandbox, and at the minimum

	prior  float64   // cost per sandbox in the trial
	single []float64 // cost of each of the latest starts
	bursts []float64 // average cost in each of the latest bursts
	dips   []float64 // temporary usage during a start
	wavers []float64 // changes without a start, or recovery despite one
	has    float64   // memory of one sandbox by its processes and cgroups, at the last reading
	waited Level     // level after the last wait for late usage
	at     int       // sandboxes at that time
}

// The number of recent values kept. The influence of other processes ages out.
const (
	latestStarts = 16
	latestBursts = 4
)

// newGuard returns a guard for a node without sandboxes of the target. It uses the
// costs of a trial, unless trial is nil.
func newGuard(before []Level, trial *guard) *guard {
	g := &guard{byName: map[string]*watched{}}
	for _, l := range before {
		w := &watched{Level: l, before: l.Left, least: l.Left, waited: l}
		if trial != nil && trial.byName[l.Name] != nil {
			w.prior = trial.byName[l.Name].each()
		}
		g.rooms, g.byName[l.Name] = append(g.rooms, w), w
	}
	return g
}

// look updates the current levels.
func (g *guard) look(levels []Level) {
	for _, l := range levels {
		if w := g.byName[l.Name]; w != nil {
			w.Level = l
			w.least = min(w.least, l.Left)
		}
	}
}

// started learns from n new sandboxes: the levels before, the minimum during the
// start, and the levels after.
func (g *guard) started(n int, before, least, after []Level) {
	g.there += n
	g.look(least)
	g.look(after)
	for _, w := range g.rooms {
		b, l, a := left(before, w.Name), left(least, w.Name), left(after, w.Name)
		w.single = latest(w.single, latestStarts, float64(b-a)/float64(max(n, 1)))
		w.dips = latest(w.dips, latestStarts, float64(b-min(l, a)))
		w.wavers = latest(w.wavers, latestStarts, float64(a-b))
	}
}

// waitedFor learns from the levels after the wait for late usage.
func (g *guard) waitedFor(levels []Level) {
	g.look(levels)
	for _, w := range g.rooms {
		if n := g.there - w.at; n > 0 {
			w.bursts = latest(w.bursts, latestBursts, float64(w.waited.Left-w.Left)/float64(n))
			w.wavers = latest(w.wavers, latestStarts, float64(w.Left-w.waited.Left))
		}
		w.waited, w.at = w.Level, g.there
	}
}

// held learns from a period without starts. has is the memory of one sandbox by
// itself, or 0 if unknown.
func (g *guard) held(before, after []Level, has float64) {
	g.look(after)
	for _, w := range g.rooms {
		change := left(after, w.Name) - left(before, w.Name)
		w.wavers = latest(w.wavers, latestStarts, float64(max(change, -change)))
	}
	if has > 0 { // otherwise keep the last known value
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

// highest returns the maximum of the values and 0.
func highest(all []float64) float64 { return slices.Max(append([]float64{0}, all...)) }

// each returns the maximum expected cost of one more sandbox.
func (w *watched) each() float64 {
	most := max(float64(w.Least), highest(w.single), highest(w.bursts))
	if w.at == 0 {
		return max(most, w.prior)
	}
	return max(most, max(float64(w.before-w.waited.Left)/float64(w.at), w.has)+highest(w.wavers)/float64(w.at))
}

// spare returns the amount kept above the floor.
func (w *watched) spare() float64 {
	return max(3*w.each(), 2*highest(w.dips), min(float64(w.Floor)/8, float64(w.before-w.Floor)/4))
}

// expected returns the amount left after all current sandboxes reach their full usage.
// Those started since the last wait may not have reached it.
func (g *guard) expected(w *watched) float64 {
	late := float64(w.waited.Left) - float64(g.there-w.at)*w.each()
	return min(float64(w.Left), late)
}

// fits returns how many more sandboxes may start, and the limiting resource.
func (g *guard) fits() (n int, by string) {
	n = math.MaxInt32
	for _, w := range g.rooms {
		room := (g.expected(w) - float64(w.Floor) - w.spare()) / w.each()
		if fit := int(max(math.Floor(room), 0)); fit < n {
			n, by = fit, w.Name
		}
	}
	return n, by
}

// lost returns the memory lost without a start, if significant, else 0. It is
// significant if it exceeds the spare and would exhaust the usable memory within a few
// such periods.
func (g *guard) lost(before, after []Level) int64 {
	w := g.byName[density.Memory]
	gone := left(before, density.Memory) - left(after, density.Memory)
	if may := left(after, density.Memory) - w.Floor; float64(gone) <= w.spare() || fewTimes*gone < may {
		return 0
	}
	return gone
}

const fewTimes = 4

// said returns the resources in the form of a record.
func (g *guard) said() (all []record.Room) {
	for _, w := range g.rooms {
		all = append(all, record.Room{Name: w.Name, Total: w.Total, Before: w.before, Least: w.least, Floor: w.Floor, Spare: int64(w.spare()), Each: int64(math.Ceil(w.each()))})
	}
	return all
}

// because returns the reason why a resource allows no more starts.
func (g *guard) because(name string) string {
	w := g.byName[name]
	return fmt.Sprintf("of %s %s are left, and one more sandbox may take %s: %s are never touched, and %s are kept above that for what cannot be foreseen",
		name, amount(name, g.expected(w)), amount(name, w.each()), amount(name, float64(w.Floor)), amount(name, w.spare()))
}

// amount formats an amount of a resource.
func amount(name string, v float64) string {
	if isCount(name) {
		return page.Count(math.Ceil(v))
	}
	return page.Memory(v)
}
