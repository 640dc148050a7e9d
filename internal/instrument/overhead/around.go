package overhead

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// kindsAround are the kinds of memory that a parent group is charged for. After the
// sandboxes are removed, page cache remains, which the kernel can reclaim.
var kindsAround = []struct {
	quantity, name, title string
	of                    func(*record.GroupMemory) int64
}{
	{"around-usage", "", "charged", func(m *record.GroupMemory) int64 { return m.Usage }},
	{"around-usage-of-kind", "anon", "anonymous", func(m *record.GroupMemory) int64 { return m.Anon }},
	{"around-usage-of-kind", "shmem", "shared", func(m *record.GroupMemory) int64 { return m.Shmem }},
	{"around-usage-of-kind", "cache", "page cache", func(m *record.GroupMemory) int64 { return m.File }},
	{"around-usage-of-kind", "kernel", "kernel", func(m *record.GroupMemory) int64 { return m.Kernel }},
}

// leavings are the leftovers that are counted after a complete visit.
var leavings = []struct {
	quantity, of, title string
	value               func(*ledger.Visit) (v float64, known bool)
	show                func(float64) string
}{
	{"left", "cgroups", "cgroups", left("cgroups"), page.Count},
	{"left", "processes", "processes", left("processes"), page.Count},
	{"left", "mounts", "mounts", left("mounts"), page.Count},
	{"left-on-node", "tasks", "node's tasks", grown(func(r *record.Reading) (int64, bool) { return int64(r.Host.Tasks), r.Host.Tasks > 0 }), signedCount},
	{"left-on-node", "memory", "node MiB", grown(func(r *record.Reading) (int64, bool) { return r.Host.Used(), r.Host.Total > 0 }), signedMiB},
	{"left-on-node", "daemon memory", "daemon MiB", grown(daemonMemory), signedMiB},
	{"restarts", "", "restarts", func(v *ledger.Visit) (float64, bool) { return livesIn(v, true), true }, page.Count},
	{"ended", "", "ended", func(v *ledger.Visit) (float64, bool) { return livesIn(v, false), true }, page.Count},
	{"container-restarts", "", "container restarts", became(func(p *record.Pod) int { return p.Restarts }), page.Count},
	{"containers-oom-killed", "", "OOM-killed", became(func(p *record.Pod) int { return p.OOMKilled }), page.Count},
	{"pods-evicted", "", "evicted", became(func(p *record.Pod) int { return map[bool]int{true: 1}[p.Evicted] }), page.Count},
	{"oom-kills", "", "OOM kills", grown(func(r *record.Reading) (int64, bool) {
		return *cmp.Or(r.Host.OOMKills, new(int64)), r.Host.OOMKills != nil
	}), page.Count},
}

// left returns the number of leftovers of a kind.
func left(kind string) func(*ledger.Visit) (float64, bool) {
	return func(v *ledger.Visit) (float64, bool) {
		n, known := v.Left()[kind]
		return n, known
	}
}

// grown returns the change of a value over a visit. The change is unknown unless the
// value was read before and after the visit.
func grown(of func(*record.Reading) (int64, bool)) func(*ledger.Visit) (float64, bool) {
	return func(v *ledger.Visit) (float64, bool) {
		before, there := of(v.Before)
		after, still := of(v.After)
		return float64(after - before), there && still
	}
}

func signedCount(v float64) string { return page.Signed(v, page.Count) }
func signedMiB(v float64) string   { return page.Signed(v, page.MiB[float64]) }

// daemonMemory returns the memory of the engine's daemons. It is unknown if some daemon
// was not read, or if there is no daemon.
func daemonMemory(r *record.Reading) (bytes int64, known bool) {
	for p := range ledger.Each(r.Processes) {
		if p.Role == record.RoleDaemon {
			if !p.Read {
				return 0, false
			}
			bytes, known = bytes+p.PSSAnon+p.PSSShmem+p.Huge, true
		}
	}
	return bytes, known
}

// became returns the sum of a count that the cluster reports for each pod of a visit. It
// is the maximum of all readings: the pods of a visit stay the same, and the counts never
// decrease.
func became(of func(*record.Pod) int) func(*ledger.Visit) (float64, bool) {
	return func(v *ledger.Visit) (most float64, known bool) {
		for p := range ledger.Each(v.Phases) {
			for _, r := range []*record.Reading{p.Begin, p.End} {
				if r == nil || r.Pods == nil {
					continue
				}
				sum := 0
				for p := range ledger.Each(r.Pods) {
					sum += of(p)
				}
				most, known = max(most, float64(sum)), true
			}
		}
		return most, known
	}
}

// livesIn counts the restarts of a visit's sandboxes, or the sandboxes that ended without one.
// Failed phases count, too.
func livesIn(v *ledger.Visit, again bool) float64 {
	restarts, gone := 0, map[int]bool{} // by lane: a sandbox that ended in one phase is also missing in later ones
	for p := range ledger.Each(v.Phases) {
		if p.Begin == nil || p.End == nil {
			continue
		}
		for _, e := range ledger.Ends(p.Begin, p.End) {
			if e.Again {
				restarts++
			} else {
				gone[e.Process.Lane] = true
			}
		}
	}
	if again {
		return float64(restarts)
	}
	return float64(len(gone))
}

// around compares the readings before the first and after the last sandbox of a target.
// It adds figures of what the sandboxes left behind, of the restarts in between, and of
// each parent group's charge before and after. RUN in a group's path stands for the run's
// id.
func (j *Judgement) around() {
	for t := range ledger.Each(j.Targets) {
		visits := slices.DeleteFunc(slices.Clone(j.visits), func(v *ledger.Visit) bool { return v.Target != t.Name || v.Before == nil || v.After == nil })
		for _, l := range leavings {
			j.overVisits(visits, l.quantity, l.value, "target", t.Name, "of", l.of)
		}
		var paths []string
		for _, v := range visits {
			for g := range ledger.Each(v.After.Around) {
				if path := around(g.Path, j.Record.Header.RunID); !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
		for _, path := range paths {
			for i, when := range []string{"before", "after"} {
				for _, kind := range kindsAround {
					j.overVisits(visits, kind.quantity, func(v *ledger.Visit) (float64, bool) {
						g := ledger.Find([2]*record.Reading{v.Before, v.After}[i].Around, func(g *record.Group) bool { return around(g.Path, j.Record.Header.RunID) == path && g.Memory != nil })
						if g == nil {
							return 0, false
						}
						return float64(kind.of(g.Memory)), true
					}, "target", t.Name, "cgroup", path, "when", when, "kind", kind.name)
				}
			}
		}
	}
}

// overVisits adds a figure of a value of each visit, if one is known.
func (j *Judgement) overVisits(visits []*ledger.Visit, quantity string, of func(*ledger.Visit) (float64, bool), labels ...string) {
	values := stat.Rounds{}
	for _, v := range visits {
		if x, known := of(v); known {
			values[v.Round] = x
		}
	}
	f := Quantities.Over(quantity, figure.Of(labels...), values)
	if strings.HasSuffix(f.Labels.Get("of"), "memory") {
		f.Unit = figure.Bytes
	}
	if quantity != "left-on-node" && f.Unit == figure.Count { // such events must not happen, so the maximum of all rounds counts
		f.Estimate = figure.Most(values)
	}
	if f.Known() {
		j.Around = append(j.Around, f)
	}
}

// leftPage shows what leaked.
func leftPage(v *Judgement) *page.Section {
	var columns []page.Quantity
	for _, l := range leavings {
		columns = append(columns, page.Quantity{Of: l.quantity, Titles: []string{l.title}, Key: "of", Values: []string{l.of}, Show: l.show})
	}
	s := page.Grid(&Quantities, v.Around, []string{"target"}, columns)
	if s == nil {
		return nil
	}
	s.Title = "before the first sandbox and after the last"
	s.Notes = []string{
		"maximum over the rounds; node, daemon: median of after − before, the node's including other processes; cgroups, processes, mounts: those named after a removed sandbox; restarts, ended: sandboxes that lost an essential process while they were measured, with or without a restart; container restarts, OOM-killed, evicted: as the cluster reports for the pods; OOM kills: of the whole node, a pod's limit's too"}
	return s
}

// groupsAroundPage shows the charges of the parent groups.
func groupsAroundPage(v *Judgement) *page.Section {
	m := page.Names("target", "cgroup", "when")
	rows := slices.DeleteFunc(v.Around.Parts("target", "cgroup", "when"), func(of figure.Set) bool { return of.Get("cgroup") == "" })
	for i, of := range rows {
		name, path := page.Heading(of.Get("target")), page.Middle(term.Clean(of.Get("cgroup")), shownCgroup)
		if i > 0 && rows[i-1].Get("target") == of.Get("target") {
			if name = ""; rows[i-1].Get("cgroup") == of.Get("cgroup") {
				path = ""
			}
		}
		m.Row(page.Words(name), page.Words(path), page.Words(of.Get("when")))
	}
	if len(rows) == 0 {
		return nil
	}
	for _, kind := range kindsAround {
		m.Add(kind.title, page.Each(rows, func(of *figure.Set) page.Cell {
			return page.Value(of.Of(kind.quantity, "kind", kind.name), page.Memory)
		}))
	}
	return &page.Section{Title: "parent cgroups of the sandboxes, before the first and after the last", Style: term.Bold, Table: m,
		Notes: []string{"charges including descendants; medians of the rounds; page cache excludes shared memory and is reclaimable: removed sandboxes mostly leave page cache; " + page.None + " it was not there"}}
}
