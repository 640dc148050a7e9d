package storage

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/answer"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
)

// answer compares each target with its base, one sentence per target. It also returns how
// many cells have figures that are not those of a device.
func (j *Judgement) answer() (out []string) {
	if len(j.Tables) == 0 {
		return []string{"No job ran."}
	}
	varied := variedOf(j.Tables)
	for i := range j.Targets {
		if text := j.against(j.Targets[i].Name, &varied); text != "" {
			out = append(out, text)
		}
	}
	if out == nil {
		out = j.alone(&varied)
	}
	measured, counts := j.measured(), map[Verdict]int{}
	for _, c := range measured {
		counts[c.Verdict]++
	}
	var parts []string
	for _, m := range meanings {
		if n := counts[m.verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, m.verdict.text()))
		}
	}
	if parts != nil {
		out = append(out, fmt.Sprintf("Not from the device, of %s: %s.", page.Amount(len(measured), "cell"), strings.Join(parts, ", ")))
	}
	return out
}

// against compares a target with the bases of its cells. It names the cells that differ and
// counts the others.
func (j *Judgement) against(target string, varied *varied) string {
	base, same, open := "", 0, 0
	var parts []string
	for _, t := range j.Tables {
		c := t.cellOf(target)
		if !c.compared() || !c.ofDevice() || !t.base.ofDevice() {
			continue
		}
		base = t.Base
		switch v := c.primary().Versus; {
		case c.Different():
			parts = append(parts, varied.name(t)+" "+answer.Times(c.ratio().Estimate))
		case v != nil && v.Verdict == stat.Same:
			same++
		default:
			open++
		}
	}
	if base == "" {
		return ""
	}
	if same > 0 {
		parts = append(parts, page.Amount(same, "cell")+" the same")
	}
	if open > 0 {
		parts = append(parts, page.Amount(open, "cell")+" without a difference shown")
	}
	text := fmt.Sprintf("%s against %s: %s", page.Heading(target), page.Heading(base), strings.Join(parts, ", "))
	if open > 0 {
		text += answer.Spoiled(j.Found)
	}
	return text + "."
}

// mostAlone is the maximum number of figures listed if nothing is compared.
const mostAlone = 4

// alone lists the first figures of the device.
func (j *Judgement) alone(varied *varied) []string {
	var parts []string
	for _, c := range j.measured() {
		if c.ofDevice() || c.Verdict == Unjudged || c.Verdict == NotContradicted {
			parts = append(parts, strings.TrimSpace(page.Heading(c.Target)+" "+varied.name(c.table))+" "+shortFigure(c.table, c).Head)
		}
	}
	if parts == nil {
		return []string{"No cell has a figure that is shown to be the device's."}
	}
	if left := len(parts) - mostAlone; left > 0 {
		parts = append(parts[:mostAlone], fmt.Sprintf("and %d more", left))
	}
	return []string{strings.Join(parts, ", ") + "."}
}
