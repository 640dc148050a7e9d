package startup

import (
	"cmp"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// Name is the instrument's verb, its key in a plan and its name in a record.
const Name = "startup"

// Judge judges a record of starts, complete or not.
func Judge(rec *record.Record) (*Judgement, error) {
	j, err := NewJudging(&rec.Header, rec.Targets)
	if err != nil {
		return nil, err
	}
	all := trace.Merge(rec.Starts)
	for i := range all {
		j.Add(&all[i])
	}
	return j.Done(rec), nil
}

// Judging judges starts one by one in bounded memory. If a target has more than
// [maxKept] starts, it keeps a random sample.
type Judging struct {
	Judgement
	infos   []record.Target
	targets []*gathered
	names   map[string]*gathered
	random  *rand.Rand
}

const (
	maxTargets = 256  // distinct targets; logs can name any number
	maxKept    = 1024 // starts per target with retained figures
	maxWhole   = 64   // of these, completely retained starts; one of them is drawn
	maxGaps    = 16   // gaps considered per start
	maxSteps   = 256  // steps per start
	maxGuests  = 64   // guests with a clock in the report
)

// NewJudging starts a judgement.
func NewJudging(h *record.Header, targets []record.Target) (*Judging, error) {
	j := &Judging{infos: targets, names: map[string]*gathered{}, random: rand.New(rand.NewPCG(1, 2))}
	if err := instrument.ReadPlan(h, Name, &j.Plan); err != nil {
		return nil, err
	}
	for i := range targets {
		j.of(targets[i].Name)
	}
	return j, nil
}

// gathered collects the starts of one target.
type gathered struct {
	Target
	listed  bool            // listed in the record's targets
	bare    bool            // an OCI runtime without an engine
	watched int             // watched starts with times
	logged  int             // watched starts that also appear in a log
	kept    []*startValues  // random sample of at most maxKept starts
	whole   []*record.Start // complete starts of some of kept
	without stat.Rounds     // wall time of unwatched rounds
	with    stat.Rounds     // wall time of watched rounds
	missing map[string]int64
	where   map[string]string
	named   map[gapKey]*record.Wait // recognized timers
	stuck   []stuck                 // starts without an end, by the point at which they stopped

	throttle finding.Throttle
}

// startValues are the values retained for a start.
type startValues struct {
	round                    int
	called, source           string  // display name, and source position
	wall, first, calls, cost float64 // negative if unknown
	firstBy                  float64
	ready, readyTo, request  float64
	engineTime               float64
	cpu                      float64
	way                      string // names of its steps, joined
	steps, phases            []stepValue
	gaps                     []record.Gap
}

type stepValue struct {
	name, kind string
	took, cpu  float64 // cpu is negative if unknown
	times      int
}

func (j *Judging) of(name string) *gathered {
	if t := j.names[name]; t != nil {
		return t
	}
	if len(j.targets) == maxTargets {
		return j.targets[maxTargets-1]
	}
	t := &gathered{Target: Target{Target: name, Engine: engineOf(name)},
		without: stat.Rounds{}, with: stat.Rounds{}, missing: map[string]int64{}, where: map[string]string{}, named: map[gapKey]*record.Wait{}}
	for _, info := range j.infos {
		if info.Name != name {
			continue
		}
		t.listed = true
		switch info.Kind {
		case "command":
			t.Engine = path.Base(info.Path)
		case "oci":
			t.Engine, t.bare = "tare", true
		}
	}
	j.names[name] = t
	j.targets = append(j.targets, t)
	return t
}

// engineOf returns the owner of the time outside runtime calls: docker for
// docker+cli/runc, containerd for cri+containerd/runc. It returns a name without a
// runtime unchanged.
func engineOf(name string) string {
	engine, _, _ := strings.Cut(name, "/")
	engine, _, _ = strings.Cut(engine, " ") // "containerd restart"
	first, second, more := strings.Cut(engine, "+")
	if more && first == "cri" {
		return second
	}
	return first
}

// Add adds a start to the judgement. It retains s.
func (j *Judging) Add(s *record.Start) {
	if !j.Plan.has(s) {
		return
	}
	t := j.of(NameOf(s))
	j.Total++
	if s.Method == record.MethodNone {
		if s.Failure == nil && s.Ended > s.Began {
			t.without[s.Round] = float64(s.Ended - s.Began)
		}
		if s.Failure != nil {
			j.failed(t, s)
		}
		return
	}
	if i := slices.IndexFunc(s.Spans, func(x record.Span) bool { return x.Kind == record.KindEngine }); s.Method == record.MethodNotes && i >= 0 {
		t.Engine = s.Spans[i].Name
	}
	t.Method, t.Clock, t.Command = s.Method, s.Clock, cmp.Or(t.Command, s.Command)
	if s.Method != record.MethodLogs && s.Method != record.MethodNotes {
		j.Live = true
		if len(s.Spans) > 0 {
			t.logged++
		}
	}
	for _, m := range s.Missing {
		t.missing[m.What] += m.Count
		if t.where[m.What] == "" {
			t.where[m.What] = m.Detail
		}
	}
	t.throttle.Add(s.Throttled)
	switch {
	case s.Failure != nil:
		j.failed(t, s)
		return
	case s.Ended == 0:
		t.NoEnd++
		t.waited(s)
	default:
		t.Starts++
	}
	t.Guests = append(t.Guests, s.Guests[:min(len(s.Guests), maxGuests-len(t.Guests))]...)
	t.keep(j.random, s, j.Plan.Slowest)
}

// NameOf returns the name by which starts are grouped. It is the target, or the title
// for a note, since each note is a separate measurement.
func NameOf(s *record.Start) string {
	if s.Method == record.MethodNotes && s.Name != "" {
		return s.Name
	}
	return s.Target
}

func (j *Judging) failed(t *gathered, s *record.Start) {
	if s.Failure.Kind == record.FailInterrupted {
		j.Total-- // not a failure of the target
		return
	}
	j.Failed++
	t.Failed++
	if t.Failure == nil {
		t.Failure = s.Failure
	}
}

// keep adds a start to the sample by algorithm R of Vitter (ACM TOMS 11, 1985). Every
// start has the same probability to be in the sample.
func (t *gathered) keep(random *rand.Rand, s *record.Start, slowest int) {
	took := func(s *record.Start) int64 { return since(s.Began, max(s.Ended, s.Began)) }
	if slowest > 0 {
		at, _ := slices.BinarySearchFunc(t.whole, took(s), func(x *record.Start, ns int64) int { return cmp.Compare(ns, took(x)) })
		t.whole = slices.Insert(t.whole, at, s)
		t.whole = t.whole[:min(len(t.whole), slowest)]
	}
	at := len(t.kept)
	t.watched++
	if at == maxKept {
		if at = random.IntN(t.watched); at >= maxKept {
			return
		}
		t.kept[at] = t.figures(s)
	} else {
		t.kept = append(t.kept, t.figures(s))
	}
	switch i := random.IntN(t.watched); {
	case slowest > 0:
	case len(t.whole) < maxWhole:
		t.whole = append(t.whole, s)
	case i < maxWhole:
		t.whole[i] = s
	}
}

// figures returns the figures of a start.
func (t *gathered) figures(s *record.Start) *startValues {
	f := &startValues{round: s.Round, called: cmp.Or(s.Name, s.Sandbox, s.Source), source: s.Source, wall: -1, first: -1, firstBy: -1, ready: -1, readyTo: -1, request: -1, calls: -1, cpu: -1, cost: -1, gaps: trace.Gaps(s, t.Engine, maxGaps)}
	if s.Ended == 0 {
		return f
	}
	f.wall = float64(s.Ended - s.Began)
	if s.First >= s.Began && s.First != 0 {
		f.first = float64(s.First - s.Began)
	}
	if s.Polls > 0 && s.Ready > s.Began {
		f.ready = float64(s.Ready - s.Began)
		if s.Unready != 0 {
			f.readyTo = float64(s.Ready - s.Unready)
		}
		if s.Request > 0 {
			f.request = float64(s.Request)
		}
	}
	if s.FirstBy > s.Began {
		f.firstBy = float64(s.FirstBy - s.Began)
	}
	f.engineTime = -1
	if !lacks(s, record.MissingProcesses) {
		f.phases = together(trace.Parts(s, t.Engine))
	}
	if !lacksCall(s) {
		calls := trace.Calls(s, t.Engine)
		in := taken(calls)
		f.calls, f.steps = float64(in[record.KindCall]), stepsOf(calls)
		f.engineTime = f.wall - float64(in[record.KindCall]+in[record.KindWorkload]+in[record.KindVMM])
	}
	for _, step := range f.steps {
		f.way += step.name + "\x00"
	}
	if n := len(s.Busy); n > 1 {
		f.cpu = float64(s.Busy[n-1].CPU - s.Busy[0].CPU)
		if f.cpu > 0 {
			f.cost = float64(s.Tracing) / f.cpu
		}
	}
	if s.Method != record.MethodLogs && s.Method != record.MethodNotes {
		t.with[s.Round] = f.wall
	}
	return f
}

// lacksCall reports whether a runtime call has no end or was not recorded. In this
// case the time cannot be divided between runtime and engine.
func lacksCall(s *record.Start) bool { return lacks(s, record.MissingCall, record.MissingProcesses) }

func lacks(s *record.Start, what ...string) bool {
	return slices.ContainsFunc(s.Missing, func(m record.Missing) bool { return slices.Contains(what, m.What) })
}

// taken returns the time of a start's parts by kind.
func taken(parts []trace.Part) map[string]int64 {
	of := map[string]int64{}
	for _, p := range parts {
		of[p.Kind] += p.Ended - p.Began
	}
	return of
}

func stepsOf(parts []trace.Part) []stepValue {
	var all []stepValue
	for _, p := range parts[:min(len(parts), maxSteps)] {
		all = append(all, stepValue{p.Name, p.Kind, float64(p.Ended - p.Began), float64(p.CPU), 1})
	}
	return all
}

// together sums parts with equal names, in order of first appearance.
func together(parts []trace.Part) []stepValue {
	var all []stepValue
	for _, p := range parts {
		i := slices.IndexFunc(all, func(f stepValue) bool { return f.name == p.Name && f.kind == p.Kind })
		if i < 0 {
			if len(all) == maxSteps {
				continue
			}
			i, all = len(all), append(all, stepValue{name: p.Name, kind: p.Kind})
		}
		f := &all[i]
		f.took += float64(p.Ended - p.Began)
		f.times++
		if p.CPU < 0 || f.cpu < 0 {
			f.cpu = -1
		} else {
			f.cpu += float64(p.CPU)
		}
	}
	return all
}
