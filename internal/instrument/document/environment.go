package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// environment returns a table of the machines, and of the versions and settings of all targets and
// tools.
func environment(measures []measure) *page.Section {
	t := &facts{at: map[[2]string]int{}}
	for i := range measures {
		rec := measures[i].Record
		t.machine = t.machineOf(&rec.Header.Environment)
		t.ofMachine(&rec.Header)
		for k := range rec.Targets {
			t.ofTarget(&rec.Targets[k])
		}
		t.ofTools(rec)
	}
	table := page.Names("of", "what")
	for i := range t.machines {
		title := "is"
		if len(t.machines) > 1 {
			title = fmt.Sprintf("machine %d", i+1)
		}
		table.Columns = append(table.Columns, page.Column{Title: title, Group: i + 1})
	}
	order := map[string]int{}
	for _, row := range t.rows {
		if _, met := order[row.of]; !met {
			order[row.of] = len(order)
		}
	}
	slices.SortStableFunc(t.rows, func(a, b fact) int { return order[a.of] - order[b.of] })
	for _, row := range t.rows {
		cells := page.Texts(row.of, row.what)
		for i := range t.machines {
			value := page.None
			if i < len(row.values) && row.values[i] != nil {
				value = strings.Join(row.values[i], "; ")
			}
			cells = append(cells, page.Words(page.Short(value, page.LongestMessage)))
		}
		table.Row(cells...)
	}
	return &page.Section{Title: "environment", Style: term.Bold, Table: table}
}

// facts collects facts about machines in the order of appearance.
type facts struct {
	machines []record.Environment
	machine  int // index of the machine that facts are added to
	rows     []fact
	at       map[[2]string]int
}

type fact struct {
	of, what string
	values   [][]string // by machine, without duplicates
}

// machineOf returns the index of the machine. Any difference in a constant property makes it a
// different machine.
func (t *facts) machineOf(e *record.Environment) int {
	same := func(a *record.Environment) bool {
		return a.Kernel == e.Kernel && a.KernelBuild == e.KernelBuild && a.OS == e.OS && a.Arch == e.Arch && a.CPUModel == e.CPUModel &&
			a.CPUs == e.CPUs && compare.SameMemory(a.Memory, e.Memory) && a.Virtual == e.Virtual && a.Cgroup == e.Cgroup
	}
	for i := range t.machines {
		if same(&t.machines[i]) {
			return i
		}
	}
	t.machines = append(t.machines, *e)
	return len(t.machines) - 1
}

// add adds a fact unless its value is empty or already present.
func (t *facts) add(of, what, value string) {
	of, what, value = page.Heading(of), page.Heading(what), term.Clean(value)
	if value == "" {
		return
	}
	key := [2]string{of, what}
	i, ok := t.at[key]
	if !ok {
		i = len(t.rows)
		t.at[key], t.rows = i, append(t.rows, fact{of: of, what: what})
	}
	row := &t.rows[i]
	for len(row.values) <= t.machine {
		row.values = append(row.values, nil)
	}
	row.values[t.machine] = page.Union(row.values[t.machine], value)
}

func (t *facts) ofMachine(h *record.Header) {
	e := &h.Environment
	const machine = "machine"
	t.add("tare", "version", h.Version)
	if w := h.Workload; w != nil {
		for _, f := range []struct{ what, value string }{
			{"image", w.Source}, {"digest", w.Digest}, {"loaded as", w.Image}, {"command", strings.Join(w.Command, " ")}, {"on the host", strings.Join(w.Host, " ")},
			{"variables", strings.Join(w.Env, " ")}, {"mounts", strings.Join(w.Mounts, " ")}, {"user", w.User}, {"folder", w.Dir}, {"stopped by", w.Stop},
		} {
			t.add("workload", f.what, f.value)
		}
	}
	if e.Kernel == "" {
		t.add(machine, "kernel", "unknown: not measured by tare")
		return
	}
	for _, f := range []struct{ what, value string }{
		{"CPU", e.CPUModel}, {"CPUs", fmt.Sprint(e.CPUs)}, {"architecture", e.Arch}, {"governor", e.Governor},
		{"memory", page.Memory(float64(e.Memory))}, {"swap", page.Memory(float64(e.Swap))}, {"virtual", e.Virtual},
		{"OS", e.OS}, {"kernel", e.Kernel}, {"kernel build", e.KernelBuild}, {"clock", e.ClockSource},
		{"cgroups", e.Cgroup}, {"cgroup controllers", strings.Join(e.Controllers, " ")}, {"root file system", e.RootFS},
		{"missing capabilities", strings.Join(e.MissingCaps, " ")}, {"lanes wait with", e.Lanes}, {"load at the start", fmt.Sprintf("%.2f", e.LoadStart)},
	} {
		t.add(machine, f.what, f.value)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Mitigations)) {
		if answer := e.Mitigations[name]; answer != "Not affected" {
			t.add("mitigation", name, answer)
		}
	}
}

func (t *facts) ofTarget(of *record.Target) {
	for _, f := range []struct{ what, value string }{
		{"kind", of.Kind}, {"version", of.Version}, {"program", of.Path}, {"digest", of.Digest}, {"OCI version of bundles", of.SpecVersion},
	} {
		t.add(of.Name, f.what, f.value)
	}
	for _, what := range slices.Sorted(maps.Keys(of.Config)) {
		t.add(of.Name, what, of.Config[what])
	}
}

// ofTools adds the reported versions of the tools and load generators.
func (t *facts) ofTools(rec *record.Record) {
	for i := range rec.Cells {
		c := &rec.Cells[i]
		t.add(c.Target, cmp.Or(c.Tool, "tool"), c.Version)
	}
	for i := range rec.Readings {
		if w := rec.Readings[i].Work; w != nil {
			t.add(rec.Readings[i].Target, "load", w.Version)
		}
	}
	for i := range rec.Points {
		if sent := rec.Points[i].Sent; sent != nil {
			t.add("client", "version", sent.Client)
		}
	}
}
