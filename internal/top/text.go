package top

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// column is one of the table's. Those of a higher rank give way first where the
// terminal is narrow.
type column struct {
	title string
	width int
	rank  int
	sort  Sort
	text  func(s *Sandbox) string
}

var columns = []column{
	{"ENGINE", 10, 5, "", func(s *Sandbox) string { return s.engine() }},
	{"CPU%", 6, 0, SortCPU, func(s *Sandbox) string { return percent(s.CPU) }},
	{"MEMORY", 7, 0, SortMemory, func(s *Sandbox) string { return size(s.Memory) }},
	{"OUTSIDE", 8, 1, SortOverhead, func(s *Sandbox) string { return size(s.MemoryOutside) }},
	{"BESIDE", 7, 2, SortOverhead, func(s *Sandbox) string { return size(s.beside()) }},
	{"CACHE", 6, 3, SortCache, func(s *Sandbox) string { return size(s.Cache) }},
	{"IO/s", 6, 4, SortIO, func(s *Sandbox) string { return rate(s.io()) }},
	{"PROCS", 5, 6, "", func(s *Sandbox) string { return strconv.Itoa(s.Processes) }},
	{"LIMIT", 6, 7, "", func(s *Sandbox) string {
		if !s.Limit.OK {
			return "-"
		}
		return size(s.Limit)
	}},
	{"FULL%", 5, 8, "", func(s *Sandbox) string {
		if !s.Full.OK {
			return "-"
		}
		return percent(s.Full)
	}},
}

const (
	narrowest = 20  // that a table is drawn for
	widest    = 400 //
	shortName = 14  // a name's least width; twelve characters of an id and a mark fit
	longName  = 48
)

// layout is which columns a width has room for.
type layout struct {
	width, name int
	columns     []column
}

func layOut(width int, list []Sandbox) layout {
	width = min(max(width, narrowest), widest)
	want := shortName
	for i := range list {
		want = max(want, min(longName, term.Width(list[i].Name)+2))
	}
	for rank := 9; ; rank-- {
		l := layout{width: width, name: width}
		for _, c := range columns {
			if c.rank < rank {
				l.columns = append(l.columns, c)
				l.name -= c.width + 1
			}
		}
		if l.name >= shortName || rank == 1 {
			l.widen(want, list)
			return l
		}
	}
}

// widen shares out what is left: names first, then what engines need.
func (l *layout) widen(want int, list []Sandbox) {
	left := max(0, l.name-want)
	l.name = max(1, l.name-left)
	for i := range l.columns {
		if c := &l.columns[i]; c.title == "ENGINE" {
			for j := range list {
				if more := len(list[j].engine()) - c.width; more > 0 && left > 0 {
					more = min(more, left)
					c.width, left = c.width+more, left-more
				}
			}
		}
	}
}

// left are the titles of the columns that there is no room for.
func (l *layout) left() (titles []string) {
	for _, c := range columns {
		if !slices.ContainsFunc(l.columns, func(o column) bool { return o.title == c.title }) {
			titles = append(titles, c.title)
		}
	}
	return titles
}

func (l *layout) row(name string, cells func(*column) string) string {
	var b strings.Builder
	b.WriteString(pad(name, l.name, false))
	for i := range l.columns {
		c := &l.columns[i]
		b.WriteByte(' ')
		b.WriteString(pad(cells(c), c.width, c.title != "ENGINE"))
	}
	return strings.TrimRight(b.String(), " ")
}

// heading marks the column that the rows are in the order of.
func (l *layout) heading(sel *Selection) string {
	title := "SANDBOX"
	if sel.Sort == SortName {
		title = "SANDBOX*"
	}
	order := sel.Sort
	if order == "" {
		order = SortMemory
	}
	return l.row(title, func(c *column) string {
		if c.sort == order && len(c.title) < c.width {
			return c.title + "*"
		}
		return c.title
	})
}

func (l *layout) sandbox(s *Sandbox, mark string) string {
	return l.row(mark+s.Name, func(c *column) string { return c.text(s) })
}

// details are the lines of a sandbox's roles and cgroups.
func (l *layout) details(s *Sandbox) []string {
	var out []string
	line := func(indent int, parts ...string) {
		text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "  ")
		out = append(out, strings.Repeat(" ", indent)+cut(text, l.width-indent))
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		pids, rules := "", ""
		n := count(len(r.Processes), "process", "processes")
		var numbers []string
		threads := 0
		for _, p := range r.Processes {
			threads += len(p.Threads)
			if len(numbers) < 6 {
				numbers = append(numbers, strconv.Itoa(p.Pid))
			}
			if rules == "" {
				rules = p.Rule
			} else if rules != p.Rule && !strings.HasSuffix(rules, " …") {
				rules += " …"
			}
		}
		pids = strings.Join(numbers, ",")
		if len(r.Processes) > len(numbers) {
			pids += ",…"
		}
		memory := ""
		switch {
		case r.Role == record.RoleVCPU:
			n = count(threads, "thread", "threads")
		case r.PSS.OK:
			memory = "pss " + fmt.Sprintf("%6s", size(r.PSS))
		default:
			memory = "rss " + fmt.Sprintf("%6s", size(r.RSS))
		}
		line(4, fmt.Sprintf("%-9s", r.Role), fmt.Sprintf("%6s%%", percent(r.CPU)), fmt.Sprintf("%10s", memory), fmt.Sprintf("%-11s", n), pids, rules)
	}
	for _, g := range s.Groups {
		nested := ""
		if g.Nested {
			nested = "(in the one above)"
		}
		line(4, fmt.Sprintf("%-9s", g.Charge), fmt.Sprintf("%6s%%", percent(g.CPU)), fmt.Sprintf("mem %6s", size(g.Memory)), g.Path, nested)
	}
	for _, where := range elsewhere(s) {
		line(4, "elsewhere", where)
	}
	return out
}

// elsewhere are the cgroups of others that memory of processes is charged to.
func elsewhere(s *Sandbox) []string {
	found := map[string]bool{}
	for _, r := range s.Roles {
		for _, p := range r.Processes {
			if !p.Beside {
				continue
			}
			for _, set := range p.Groups[:min(1, len(p.Groups))] {
				where, ok := set.Paths["memory"]
				if !ok {
					where = set.Paths[""]
				}
				found[string(r.Role)+" is charged to "+where] = true
			}
		}
	}
	var out []string
	for where := range found {
		out = append(out, where)
	}
	sort.Strings(out)
	return out
}

// head are the lines about the node, the sum, and tare itself.
func (v *View) head(width int) []string {
	n := &v.Node
	node := []string{"node"}
	node = append(node, fmt.Sprintf("memory %s used, %s available of %s", size(n.Used), size(n.Available), size(n.Total)))
	node = append(node, fmt.Sprintf("CPU %s of %s", cpus(n.CPU), count(n.CPUs, "CPU", "CPUs")))
	if n.Load1.OK {
		node = append(node, fmt.Sprintf("load %.2f", n.Load1.V))
	}
	if n.PSICPU.OK {
		node = append(node, fmt.Sprintf("waiting for CPU %s%%, memory %s%%, I/O %s%%", percent(n.PSICPU), percent(n.PSIMemory), percent(n.PSIIO)))
	}
	lines := flow(node, width)
	sum := []string{count(v.Count, "sandbox", "sandboxes")}
	if v.Count > 0 {
		sum = append(sum, fmt.Sprintf("CPU %s%%", percent(v.Sum.CPU)), fmt.Sprintf("memory %s", size(v.Sum.Memory)),
			fmt.Sprintf("outside %s", size(v.Sum.MemoryOutside)), fmt.Sprintf("beside %s (%s)", size(v.Sum.beside()), besideKind(v)),
			fmt.Sprintf("cache %s", size(v.Sum.Cache)))
	}
	sum = append(sum, fmt.Sprintf("tare top itself: CPU %s%%, %s", percent(v.Own.CPU), size(v.Own.Memory)))
	return append(lines, flow(sum, width)...)
}

func besideKind(v *View) string {
	if v.Sum.BesidePSS.OK {
		return "PSS"
	}
	return "RSS"
}

// troubles says what could not be read.
func (v *View) troubles(width int) []string {
	p := &v.Problems
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(p.Denied, "denied (run as root to see all)")
	add(p.Reused, "pids given away")
	add(p.Backwards, "counters went back")
	add(p.Broken, "of an unknown form")
	if len(parts) == 0 { // that processes end is nothing to worry about
		return nil
	}
	add(p.Gone, "gone while read")
	return []string{cut("not read: "+strings.Join(parts, ", "), width)}
}

// nothing is said where there is nothing to show.
func (v *View) nothing(shown []Sandbox) string {
	switch {
	case v.Count == 0 && v.unprivileged:
		return "No containers or pods are to be seen here; without root some may not be."
	case v.Count == 0:
		return "There are no containers or pods here."
	case len(shown) == 0:
		return "No sandbox is as it was asked for (--filter, --engine)."
	}
	return ""
}

// Text is the view in plain lines, for a width in columns.
func (v *View) Text(sel *Selection, width int, when bool) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight(text, " ") + "\n") }
	if when {
		line(v.Time.Format(time.DateTime))
	}
	for _, text := range append(v.head(width), v.troubles(width)...) {
		line(text)
	}
	line("")
	shown := sel.of(v.Sandboxes)
	if text := v.nothing(shown); text != "" {
		line(text)
		return b.String()
	}
	l := layOut(width, shown)
	line(l.heading(sel))
	for i := range shown {
		line(l.sandbox(&shown[i], ""))
	}
	if left := v.Count - len(shown); left > 0 {
		line(fmt.Sprintf("(%d more not shown)", left))
	}
	return b.String()
}
