package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// head returns the lines about the node, the sum of sandboxes, and tare.
func (v *view) head(width int) []string {
	n := &v.Node
	busy := unknown
	if n.CPU.OK {
		busy = strconv.FormatFloat(n.CPU.V, 'f', 2, 64)
	}
	parts := []string{
		"node", fmt.Sprintf("memory %s used, %s available of %s", size(n.Used), size(n.Available), size(n.Total)),
		fmt.Sprintf("CPU %s of %s", busy, count(n.CPUs, "CPU", "CPUs")),
	}
	if n.Load1.OK {
		parts = append(parts, fmt.Sprintf("load %.2f", n.Load1.V))
	}
	if n.PSICPU.OK {
		parts = append(parts, fmt.Sprintf("waiting for CPU %s%%, memory %s%%, I/O %s%%", percent(n.PSICPU), percent(n.PSIMemory), percent(n.PSIIO)))
	}
	lines := flow(parts, width, "   ")
	parts = []string{count(v.Count, "sandbox", "sandboxes")}
	if v.Count > 0 {
		kind := "RSS"
		if v.Sum.BesidePSS.OK {
			kind = "PSS"
		}
		parts = append(parts, "CPU "+percent(v.Sum.CPU)+"%", "memory "+size(v.Sum.Memory), "outside "+size(v.Sum.MemoryOutside),
			fmt.Sprintf("beside %s (%s)", size(v.Sum.beside()), kind), "cache "+size(v.Sum.Cache))
	}
	parts = append(parts, fmt.Sprintf("tare top itself: CPU %s%%, %s", percent(v.Own.CPU), size(v.Own.Memory)))
	return append(lines, flow(parts, width, "   ")...)
}

// troubles describes read failures, or returns "" if there are no serious ones.
func (v *view) troubles() string {
	p := &v.Problems
	var parts []string
	for _, one := range []struct {
		n    int
		what string
	}{{p.Denied, "denied (run as root to see all)"}, {p.Reused, "pids reused"}, {p.Backwards, "counters decreased"}, {p.Broken, "malformed"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if len(parts) > 0 && p.Gone > 0 { // ended processes alone are normal
		parts = append(parts, fmt.Sprintf("%d gone while read", p.Gone))
	}
	if len(parts) == 0 {
		return ""
	}
	return "not read: " + strings.Join(parts, ", ")
}

// nothing returns the message for an empty table, or "".
func (v *view) nothing(shown []Sandbox) string {
	switch {
	case v.Count == 0 && v.unprivileged:
		return "No containers or pods found; run as root to see all of them."
	case v.Count == 0:
		return "No containers or pods found."
	case len(shown) == 0:
		return "No sandbox matches --filter and --engine."
	}
	return ""
}

// text returns the view as plain lines.
func (v *view) text(sel *Selection, width int, when bool) string {
	var lines []string
	if when {
		lines = append(lines, v.Time.Format(time.DateTime))
	}
	lines = append(lines, v.head(width)...)
	if text := v.troubles(); text != "" {
		lines = append(lines, cut(text, width))
	}
	lines = append(lines, "")
	shown := sel.of(v.Sandboxes)
	if text := v.nothing(shown); text != "" {
		return strings.Join(append(lines, text), "\n") + "\n"
	}
	l := layOut(width, shown, sel)
	lines = append(lines, l.heading(sel))
	for i := range shown {
		lines = append(lines, l.sandbox(&shown[i], ""))
	}
	if left := v.Count - len(shown); left > 0 {
		lines = append(lines, fmt.Sprintf("(%d more not shown)", left))
	}
	return strings.Join(lines, "\n") + "\n"
}

// details returns the lines of a sandbox's roles and cgroups.
func details(s *Sandbox, width int) []string {
	var out []string
	line := func(parts ...string) {
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
		out = append(out, "    "+cut(strings.Join(parts, "  "), width-4))
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		threads := 0
		var pids, rules []string
		for _, p := range r.Processes {
			threads += len(p.Threads)
			pids = append(pids, strconv.Itoa(p.Pid))
			if !slices.Contains(rules, p.Rule) {
				rules = append(rules, p.Rule)
			}
		}
		n, memory := count(len(r.Processes), "process", "processes"), "rss "+fmt.Sprintf("%6s", size(r.RSS))
		switch {
		case r.Role == record.RoleVCPU:
			n, memory = count(threads, "thread", "threads"), ""
		case r.PSS.OK:
			memory = "pss " + fmt.Sprintf("%6s", size(r.PSS))
		}
		line(fmt.Sprintf("%-9s", r.Role), fmt.Sprintf("%6s%%", percent(r.CPU)), fmt.Sprintf("%10s", memory), fmt.Sprintf("%-11s", n), first(pids, 6, ","), first(rules, 1, " "))
	}
	for _, g := range s.Groups {
		nested := ""
		if g.Nested {
			nested = "(in the one above)"
		}
		line(fmt.Sprintf("%-9s", g.Charge), fmt.Sprintf("%6s%%", percent(g.CPU)), fmt.Sprintf("mem %6s", size(g.Memory)), g.Path, nested)
	}
	for _, where := range elsewhere(s) {
		line("elsewhere", where)
	}
	return out
}

// elsewhere returns the shared cgroups that memory of processes is charged to.
func elsewhere(s *Sandbox) (out []string) {
	for _, r := range s.Roles {
		for _, p := range r.Processes {
			if p.Beside && len(p.Groups) > 0 {
				paths := p.Groups[0].Paths
				out = append(out, string(r.Role)+" is charged to "+cmp.Or(paths["memory"], paths[""]))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// first joins the first elements of a list, with a mark if there are more.
func first(list []string, most int, between string) string {
	if len(list) > most {
		list = append(list[:most:most], "…")
	}
	return strings.Join(list, between)
}

// cut cleans a text and truncates it to a width with "…".
func cut(text string, width int) string {
	return ansi.Truncate(term.Clean(text), max(0, width), "…")
}

// pad truncates a text or fills it with spaces to a width.
func pad(text string, width int, right bool) string {
	text = cut(text, width)
	space := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

// flow arranges texts in lines of a width.
func flow(texts []string, width int, between string) []string {
	var lines []string
	line := ""
	for _, text := range texts {
		text = cut(text, width)
		switch {
		case line == "":
			line = text
		case ansi.StringWidth(line+between+text) <= width:
			line += between + text
		default:
			lines = append(lines, line)
			line = text
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
