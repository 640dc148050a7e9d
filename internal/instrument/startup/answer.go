package startup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// mostParts is the maximum number of parts of a start in an answer.
const mostParts = 4

// answer returns one sentence per target with the duration of a start and its longest
// parts. Starts without an end are reported last.
func (j *Judgement) answer() (out []string) {
	isHost := func(i int) bool {
		return slices.ContainsFunc(j.Record.Targets, func(t record.Target) bool { return t.Name == j.Targets[i].Target && t.Kind == "host" })
	}
	var order []int // the host last, since it is not a runtime
	for _, host := range []bool{false, true} {
		for i := range j.Targets {
			if isHost(i) == host {
				order = append(order, i)
			}
		}
	}
	for _, i := range order {
		t := &j.Targets[i]
		name := page.Heading(page.Known(t.Target))
		switch all := t.Starts + t.NoEnd + t.Failed; {
		case all == 0:
			continue
		case t.Starts == 0 && t.NoEnd == 0:
			text := fmt.Sprintf("%s: %d of %s failed", name, t.Failed, page.Amount(all, "start"))
			if t.Failure != nil {
				text += ": " + page.Short(term.Clean(t.Failure.Detail), page.LongestTitle)
			}
			out = append(out, text+".")
			continue
		case t.Wall.Known():
			text := fmt.Sprintf("%s: %s", name, page.Median(&t.Wall).Head)
			if all > 1 {
				text = fmt.Sprintf("%s: %d of %s, median %s", name, t.Starts, page.Amount(all, "start"), page.Rounded(t.Wall.Estimate, page.Duration))
			}
			if parts := t.longest(); parts != "" && !isHost(i) {
				text += "; longest: " + parts
			}
			out = append(out, text+".")
		}
	}
	if strings.Contains(strings.Join(out, " "), "libnetwork-setkey") {
		out = append(out, "libnetwork-setkey is dockerd's hook in runc create: it waits until dockerd has set up the container's network namespace; with --network host there is none.")
	}
	for i := range j.Found {
		if f := &j.Found[i]; f.Code == foundNoEnd {
			out = append(out, page.Heading(f.Target)+": "+page.Short(term.Clean(f.Message), page.LongestTitle)+".")
		}
	}
	if out == nil {
		out = []string{"No start was seen."}
	}
	return out
}

// longest returns the longest parts of a start with their shares of the wall time.
func (t *Target) longest() string {
	parts := slices.DeleteFunc(slices.Clone(t.Phases), func(s Step) bool { return !s.Took.Known() || t.Wall.Value <= 0 })
	slices.SortStableFunc(parts, func(a, b Step) int { return cmp.Compare(b.Took.Value, a.Took.Value) })
	var words []string
	for _, s := range parts[:min(len(parts), mostParts)] {
		if share := 100 * s.Took.Value / t.Wall.Value; share >= 1 {
			words = append(words, fmt.Sprintf("%s %.0f %%", page.Heading(s.Name), min(share, 100)))
		}
	}
	return strings.Join(words, ", ")
}
