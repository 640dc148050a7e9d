package app

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// recorded returns the judgement of a run of two targets. change may modify the windows.
func recorded(t *testing.T, plan func(*Options), change func(*Window)) *Judgement {
	t.Helper()
	return recordedOf(t, plan, []string{"host", "runc"}, 12, change)
}

func recordedOf(t *testing.T, plan func(*Options), targets []string, rounds int, change func(*Window)) *Judgement {
	t.Helper()
	p := Defaults()
	p.Duration, p.Seed = 1e9, 1
	plan(&p)
	rec := &record.Record{
		Header: record.Header{Experiment: Name, Plan: must.JSON(t, p), Environment: record.Environment{CPUs: 2}},
		End:    &record.End{Status: "done"},
	}
	for _, name := range targets {
		rec.Targets = append(rec.Targets, record.Target{Name: name, Kind: map[string]string{"host": "host"}[name]})
	}
	for round := range rounds {
		for _, target := range rec.Targets {
			for _, n := range append([]string{""}, p.Neighbours...) {
				w := &Window{Type: TypeWindow, Round: round, Target: target.Name, Neighbour: n, Begun: 1, Ended: 1e9, Start: 1, Unready: 2e6, Ready: 3e6, First: 1e5,
					Sent:      &record.Sent{Requests: 5000, QPS: 5000 + float64(round), P50: 1e5, P90: 2e5, P99: 3e5, P999: 4e5, Max: 5e5},
					ClientCPU: 1e8, Seen: &record.Observed{Took: 1e9, Busy: 1, CPU: []record.RoleTime{{Role: record.RoleWorkload, NS: 5e8}}}}
				change(w)
				rec.Add(*w)
			}
		}
	}
	return must.Get(Judge(rec))(t)
}

func codes(j *Judgement) (all []string) {
	for _, f := range j.Found {
		all = append(all, f.Code)
	}
	return all
}

func TestFindingsNameTheLoadLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan   func(*Options)
		change func(*Window)
		want   string // "" for no finding
	}{
		"nothing": {func(*Options) {}, func(*Window) {}, ""},
		"client uses the whole node": {func(*Options) {}, func(w *Window) {
			w.ClientCPU, w.Seen.Busy = 1.2e9, 1.98
		}, foundClientBound},
		"node full, mostly by the server":      {func(*Options) {}, func(w *Window) { w.Seen.Busy = 1.98 }, foundNodeFull},
		"server at its limit":                  {func(o *Options) { o.Limits.CPU = 0.5 }, func(w *Window) { w.Seen.CPU[0].NS = 4.9e8 }, foundLimit},
		"throttled for longer than the window": {func(o *Options) { o.Limits.CPU = 1 }, func(w *Window) { w.Seen.Throttled = 3e9 }, foundLimit},
		"limit not reached":                    {func(o *Options) { o.Limits.CPU = 2 }, func(*Window) {}, ""},
		"too few for p99.9":                    {func(*Options) {}, func(w *Window) { w.Sent.Requests = 999 }, foundFewSamples},
		"rate not reached":                     {func(o *Options) { o.Rate = 6000 }, func(*Window) {}, foundRateMissed},
		"rate reached":                         {func(o *Options) { o.Rate = 5000 }, func(*Window) {}, ""},
		"pressure from others":                 {func(*Options) {}, func(w *Window) { w.Seen.HavePSI, w.Seen.PSICPU = true, 0.5 }, finding.Pressure},
		"pressure from the load": {func(*Options) {}, func(w *Window) {
			w.Seen.HavePSI, w.Seen.PSICPU, w.Seen.CPU[0].NS = true, 0.5, 8e8
		}, ""},
		"pressure with incomplete usage": {func(*Options) {}, func(w *Window) { w.Seen.HavePSI, w.Seen.PSICPU, w.CPUPartly = true, 0.5, true }, ""},
		"unsent requests":                {func(o *Options) { o.Rate = 5000 }, func(w *Window) { w.Sent.Unsent = 1 }, foundUnsent},
		"failed requests": {func(*Options) {}, func(w *Window) {
			w.Sent.Errors, w.Sent.Failures = 3, map[string]int64{"status 503": 3}
		}, foundErrors},
	} {
		j := recorded(t, c.plan, c.change)
		got := codes(j)
		slices.Sort(got)
		if got = slices.Compact(got); c.want == "" && got != nil || c.want != "" && !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: got findings %q, want %q", name, got, c.want)
		}
	}
}

func TestEquallyFrequentCausesHaveAStableOrder(t *testing.T) {
	t.Parallel()
	j := recorded(t, func(*Options) {}, func(w *Window) {
		w.Sent.Errors, w.Sent.Failures = 26, map[string]int64{"z": 6}
		for why := 'a'; why < 'u'; why++ {
			w.Sent.Failures[string(why)] = 1
		}
	})
	want := "312 of 60000 requests failed: z (72), a (12), b (12), c (12), d (12), "
	check.That(t, strings.HasPrefix(j.Found[0].Message, want), "%s", j.Found[0].Message)
}

func TestOutcomeIsComparedWithinItsRounds(t *testing.T) {
	t.Parallel()
	j := recorded(t, func(o *Options) { o.Neighbours = []string{"spin 2cpu"} }, func(w *Window) {
		if w.Target == "runc" {
			w.Sent.QPS *= 0.8
		}
		if w.Neighbour != "" {
			w.Sent.QPS *= map[string]float64{"host": 0.5, "runc": 0.4}[w.Target]
			w.Sent.P99 *= 3
		}
	})
	for want, labels := range map[float64][]string{
		0.8: {"throughput-times", "target", "runc", "to", "host"},
		0.5: {"throughput-kept", "target", "host"},
		0.4: {"throughput-kept", "target", "runc"},
		3:   {"latency-times", "target", "runc", "to", "alone"},
	} {
		f := figure.Find(j.Figures(), labels[0], labels[1:]...)
		check.That(t, math.Abs(f.Value-want) <= 1e-6 && (want != 0.8 || f.Versus.Different()),
			"%v is %g [%g, %g], want %g", labels, f.Value, f.Lo, f.Hi, want)
	}
	kept := figure.Find(j.Figures(), "throughput-kept", "target", "host")
	v := kept.Versus
	check.That(t, v != nil && v.Baseline == "runc" && v.Different() && math.Abs(v.Shift.Value-0.25) <= 1e-6, "throughput kept by the host with the neighbour: %+v", kept)
	c := figure.Find(j.Figures(), "cpu-per-request", "target", "runc", "role", "workload")
	check.That(t, c.Value == 1e5, "CPU per request is %g ns", c.Value)
}

func TestFirstAnswerStatesItsSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready   string
		change  func(*Window)
		note    string
		columns []string
		cell    string
	}{
		"first answer of a request": {"", func(*Window) {}, "until a request was answered, asked again and again (resolution 1.00 ms at worst); first request: that one alone",
			[]string{"first answer", "first request"}, "3.00 ms"},
		"first accepted connection": {"tcp:8443", func(w *Window) { w.First = 0 },
			"until a connection was accepted, which is not yet an answer (tcp:8443), asked again and again (resolution 1.00 ms at worst)", []string{"first answer"}, "3.00 ms"},
		"log line": {"log:up", func(w *Window) { w.First = 0 }, "by its own sign, which is not yet an answer (log:up)", []string{"first answer"}, "3.00 ms"},
		"ready at the first poll": {"", func(w *Window) {
			if w.Round > 0 {
				w.Unready = 0
			}
		}, "(resolution 1.00 ms at worst), at most (≤) in 22 of 24: ready when first asked; first request: that one alone", []string{"first answer", "first request"}, "≤ 3.00 ms"},
	} {
		j := recorded(t, func(o *Options) { o.Ready, o.Neighbours = setting.Ready(c.ready), []string{"spin 2cpu"} }, c.change)
		note := j.latencies()
		check.That(t, strings.Contains(note, c.note), "%s: %s", name, note)
		tables := j.All.Parts("neighbour")
		shifted := page.Shifts(j.rowsOf(tables[0]), j.Plan.Comparing).Table
		if got := shifted.Rows[len(shifted.Rows)-1]; got[0].Head != "first answer" || strings.HasPrefix(c.cell, "≤") != (strings.HasPrefix(got[1].Head, "≤ ") && got[3].Head == page.None) {
			t.Errorf("%s: compared as %+v", name, got)
		}
		check.Equal(t, name, page.Value(j.All.Of("first-answer"), page.Duration).Head, c.cell)
		for i, want := range [][]string{c.columns, nil} { // no columns if there is a neighbour, because it starts later
			var got []string
			for _, column := range j.requests(tables[i]).Table.Columns {
				if strings.HasPrefix(column.Title, "first ") {
					got = append(got, column.Title)
				}
			}
			check.Equal(t, fmt.Sprintf("%s: columns with neighbour %q", name, tables[i].Get("neighbour")), got, want)
		}
		for _, f := range j.Figures() {
			check.That(t, !strings.HasPrefix(f.Quantity, "first-") || f.Labels.Get("neighbour") == "" && f.Value > 0,
				"%s: %s of %v is %g", name, f.Quantity, f.Labels, f.Value)
		}
	}
}

func TestTotalUsesOnlyRoundsWithAllRoles(t *testing.T) {
	t.Parallel()
	j := recorded(t, func(*Options) {}, func(w *Window) {
		if w.CPUPartly = w.Target == "runc" && w.Round < 3; w.CPUPartly {
			w.Seen.CPU[0].NS = 1
		}
	})
	all := figure.Find(j.Figures(), "cpu-per-request", "target", "runc", "role", "all")
	check.That(t, len(all.Rounds) == 9 && all.Value == 1e5, "%d rounds, %g ns", len(all.Rounds), all.Value)
	notes := j.cpu(j.All).Notes
	check.That(t, strings.HasPrefix(notes[len(notes)-1], "3 of 24 windows are not in all"), "%q", notes)
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Options){
		"of the workload: write": func(o *Options) { o.URL = "http://example.org:80/" },
		"is not an address":      func(o *Options) { o.URL = "file:///etc/passwd" },
		"are none":               func(o *Options) { o.Rate, o.Duration = 1, terms.MinLoad },
		"is not a neighbour":     func(o *Options) { o.Neighbours = []string{"storage dance"} },
		"spin 2cpu":              func(o *Options) { o.Neighbours = []string{"spin fast"} },
		"or an image":            func(o *Options) { o.Neighbours = []string{"redis:7 'unended"} },
		"require a workload":     func(o *Options) { o.Workload.Pull, o.Neighbours = true, []string{"spin 1cpu"} },
		"a number of connect":    func(o *Options) { o.Connections = -1 },
		"is not one of":          func(o *Options) { o.Baseline, o.Targets = "runc", []string{"crun"} },
	} {
		o := Defaults()
		change(&o)
		check.Error(t, option.Check(&o), want)
	}
	for text, want := range map[string]Neighbour{
		"spin  2cpu":                 {Phase: overhead.Phase{Kind: overhead.PhaseSpin, Name: "spin 2cpu", CPUs: 2}},
		"storage randwrite":          {Phase: overhead.Phase{Name: "storage randwrite"}, Pattern: "randwrite"},
		"spin:1":                     {Phase: overhead.Phase{Name: "spin:1"}, Image: "spin:1"},
		"/srv/job.tar job -c 'a  b'": {Phase: overhead.Phase{Name: "/srv/job.tar job -c 'a b'"}, Image: "/srv/job.tar", Command: []string{"job", "-c", "a  b"}},
	} {
		check.Equal(t, text, must.Get(ParseNeighbour(text))(t), want)
	}
	o := Defaults()
	o.Workload.Pull, o.Neighbours = true, []string{"hold 1MiB", "redis:7"}
	err := option.Check(&o)
	check.That(t, err == nil && len(o.Images()) == 1 && o.Images()[0].Pull, "a neighbour's image is not pulled: %v, %+v", err, o.Images())
	for text, want := range map[string]string{"http://:8080/a?b=1": "http:8080/a?b=1=200", "http://:80": "http:80/=200", "https://:8443/": "tcp:8443"} {
		o := Defaults()
		o.URL = text
		if got := o.WhenReady(o.Ready); string(got) != want || got.Check() != nil || option.Check(&o) != nil {
			t.Errorf("%s is ready at %s: %v, %v", text, got, got.Check(), option.Check(&o))
		}
	}
}

// The compared windows share no round, some rounds or all rounds.
func TestRatioPairsWindowsOfTheSameRound(t *testing.T) {
	t.Parallel()
	failed := &record.Failure{Kind: record.FailError, Detail: "as told"}
	for name, c := range map[string]struct {
		fails func(*Window) bool
		want  map[string]int // rounds of a ratio
	}{
		"all": {func(*Window) bool { return false }, map[string]int{"p99 × alone": 12, "× host": 12, "vs": 12}},
		"no round with both alone and neighbour": {func(w *Window) bool { return (w.Neighbour == "") == (w.Round < 6) },
			map[string]int{"p99 × alone": 0, "× host": 6, "vs": 6}},
		"some rounds with both alone and neighbour": {func(w *Window) bool { return w.Neighbour == "" && w.Round < 4 },
			map[string]int{"p99 × alone": 8, "× host": 8, "vs": 8}},
		"no round with both targets": {func(w *Window) bool { return (w.Target == "host") == (w.Round < 6) },
			map[string]int{"p99 × alone": 6, "× host": 0, "vs": 0}},
	} {
		j := recorded(t, func(o *Options) { o.Neighbours = []string{"spin 1cpu"} }, func(w *Window) {
			if w.Neighbour != "" {
				w.Sent.P99 *= 3
			}
			if c.fails(w) {
				w.Failure, w.Sent, w.Seen = failed, nil, nil
			}
		})
		tables, versus := j.All.Parts("neighbour"), 0
		if v := tables[0].Part("target", "host").Of("throughput").Versus; v != nil {
			versus = v.Shift.N
		}
		runc := tables[1].Part("target", "runc")
		times, kept := runc.Of("latency-times"), runc.Of("throughput-kept")
		got := map[string]int{"p99 × alone": times.N, "× host": tables[0].Part("target", "runc").Of("throughput-times").N, "vs": versus}
		check.Equal(t, fmt.Sprintf("%s: rounds", name), got, c.want)
		if known := times.Known(); known != kept.Known() || known && math.Abs(times.Value-3) > 1e-9 {
			t.Errorf("%s: p99 × alone is %+v, requests/s %+v", name, times.Estimate, kept.Estimate)
		}
		for _, part := range tables {
			s := page.Shifts(j.rowsOf(part), j.Plan.Comparing)
			check.That(t, (s == nil) == (versus == 0), "%s: the table of shifts is %+v", name, s)
		}
	}
}

func TestNeighbourUsageIsZeroOrUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		used  func(round int) *int64
		known int
		value float64
		note  string
	}{
		"known in every window":   {func(int) *int64 { return new(int64(5e8)) }, 12, 0.5, ""},
		"zero in most windows":    {func(round int) *int64 { return new(int64(round/11) * 1e9) }, 12, 0, ""},
		"unknown in three rounds": {func(round int) *int64 { return map[bool]*int64{true: new(int64(5e8))}[round >= 3] }, 9, 0.5, "6 of 24 windows are not in its CPUs"},
		"unknown in every window": {func(int) *int64 { return nil }, 0, 0, "24 of 24 windows are not in its CPUs"},
		"zero or unknown":         {func(round int) *int64 { return map[bool]*int64{true: new(int64(0))}[round >= 6] }, 6, 0, "12 of 24 windows are not in its CPUs"},
	} {
		j := recorded(t, func(o *Options) { o.Neighbours = []string{"spin 1cpu"} }, func(w *Window) {
			if w.Neighbour != "" {
				w.BesideCPU = c.used(w.Round)
			}
		})
		f := j.All.Parts("neighbour")[1].Part("target", "runc").Of("neighbour-cpu")
		check.That(t, len(f.Rounds) == c.known && f.Value == c.value, "%s: %g CPUs in %d rounds", name, f.Value, len(f.Rounds))
		notes := strings.Join(j.neighbours().Notes[1:], "\n")
		check.That(t, strings.HasPrefix(notes, c.note) && (notes == "") == (c.note == ""), "%s: %s", name, notes)
	}
	text, err := json.Marshal(Window{BesideCPU: new(int64(0))})
	check.That(t, err == nil && strings.Contains(string(text), `"beside_cpu":0`), "a measured zero is stored as %s, %v", text, err)
}

func TestTooFewRoundsToCompareAreReported(t *testing.T) {
	t.Parallel()
	few := func(change func(*Options), more, rounds int) (told []string) {
		var targets []string
		for i := range 1 + more {
			targets = append(targets, "t"+strconv.Itoa(i))
		}
		j := recordedOf(t, change, targets, rounds, func(*Window) {})
		most := 0
		for _, c := range j.compared {
			most = max(most, c.comparisons)
		}
		check.Equal(t, "planned comparisons", j.Plan.Comparisons(j.Record.Targets), most)
		for _, f := range j.Found {
			told = append(told, f.Message+"; "+f.Advice)
		}
		return told
	}
	one := func(o *Options) { o.Neighbours = []string{"spin 1cpu"} }
	for name, c := range map[string]struct {
		change       func(*Options)
		more, rounds int
		want         []string
	}{
		"three targets with the default rounds": {func(*Options) {}, 2, 9, nil},
		"ten targets with the default rounds":   {func(*Options) {}, 9, 9, []string{"compared with t0: 9 rounds cannot show a difference, however large it is: the comparisons in the table need 12; use --rounds 12 or more"}},
		"ten targets with 12 rounds":            {func(*Options) {}, 9, 12, nil},
		"unadjusted":                            {func(o *Options) { o.Adjust = stat.Raw }, 9, 9, nil},
		"one neighbour with too few rounds":     {one, 9, 11, []string{"compared with t0: 11 rounds cannot show a difference, however large it is: the comparisons in the table need 12; use --rounds 12 or more"}},
		"too few rounds for an interval":        {one, 9, 5, []string{"5 rounds give no 95 % interval; use --rounds 12 or more"}},
		"many neighbours": {func(o *Options) {
			for i := range 20 {
				o.Neighbours = append(o.Neighbours, fmt.Sprintf("hold %dMiB", i+1))
			}
		}, 1, 9, []string{"p99 × alone: 9 rounds cannot show a difference, however large it is: the comparisons in the table need 11; use --rounds 11 or more",
			"requests/s × alone, vs t0: 9 rounds cannot show a difference, however large it is: the comparisons in the table need 10; use --rounds 10 or more"}},
	} {
		check.Equal(t, name, few(c.change, c.more, c.rounds), c.want)
	}
	for name, c := range map[string]struct {
		targets, neighbours []string
		want                int
	}{
		"one target":                     {[]string{"runc"}, nil, 0},
		"three targets with a neighbour": {[]string{"host", "runc", "crun"}, []string{"spin 1cpu"}, 12},
		"one target with two neighbours": {[]string{"runc"}, []string{"a:1", "b:1"}, 2},
		"host runs no image":             {[]string{"host", "runc"}, []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "spin 1cpu"}, 9},
		"host with a neighbour":          {[]string{"host"}, []string{"spin 1cpu"}, 1},
	} {
		o, targets := Options{Neighbours: c.neighbours}, []record.Target(nil)
		for _, name := range c.targets {
			targets = append(targets, record.Target{Name: name})
		}
		check.Equal(t, name, o.Comparisons(targets), c.want)
	}
}

func TestOtherDaemonWorkIsReported(t *testing.T) {
	t.Parallel()
	for _, role := range []record.Role{record.RoleDaemon, record.RoleShim} {
		j := recorded(t, func(o *Options) { o.Neighbours = []string{"spin 1cpu"} }, func(w *Window) {
			w.Seen.CPU = append(w.Seen.CPU, record.RoleTime{Role: role, NS: 1e6})
		})
		for _, part := range j.All.Parts("neighbour") {
			said := strings.Contains(strings.Join(j.cpu(part).Notes, "\n"), "for the neighbour")
			if said != (role == record.RoleDaemon && part.Get("neighbour") != "") {
				t.Errorf("%s%s: note on the neighbour: %v", role, beside(part), said)
			}
		}
	}
}

func TestUnknownPressureNamesItsOwner(t *testing.T) {
	t.Parallel()
	j := recorded(t, func(o *Options) { o.Neighbours = []string{"spin 1cpu"} }, func(w *Window) {
		if w.Target == "host" {
			w.Unpressed = "in no group"
		}
		if w.Neighbour != "" && (w.Target == "host" || w.Round < 2) {
			w.UnpressedBeside = "in no group"
		}
	})
	got := j.neighbours().Notes[2:]
	want := []string{"no PSI of the workload's cgroup of host beside spin 1cpu (12 of 12 windows): in no group",
		"no PSI of the neighbour's cgroup of host beside spin 1cpu (12 of 12 windows), runc beside spin 1cpu (2 of 12 windows): in no group"}
	check.Equal(t, "result", got, want)
}
