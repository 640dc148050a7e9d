package overhead

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

func text(t *testing.T, j *Judgement, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, format, []*page.Page{j.Page(page.Options{})}, page.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOnlyRolesThatSomeTargetHasAreColumns(t *testing.T) {
	t.Parallel()
	out := text(t, four(), "text")
	_, table, _ := strings.Cut(out, "idle, 1 sandbox: memory by role")
	heading, _, _ := strings.Cut(strings.SplitN(table, "\n", 2)[1], "\n")
	got := strings.Fields(heading)
	want := []string{"target", "workload", "pause", "shim", "vmm", "virtiofs", "sentry", "gofer", "daemon", "kernel", "sum", "residual"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRolesOfALaterVersionAreShownBehindThoseOfThis(t *testing.T) {
	t.Parallel()
	w := four()
	w.Tables[0].Cells[0].Ledger.Rows = append(w.Tables[0].Cells[0].Ledger.Rows, role("pager", 1, 12, 0, 7, ""))
	if out := text(t, w, "md"); !strings.Contains(out, "| kernel | pager | sum |") || !strings.Contains(out, "| pager | sum |") {
		t.Errorf("no such column in:\n%s", out)
	}
}

func TestTheRowsOfATargetAddUpToItsSum(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(text(t, four(), "md")) {
		if !strings.HasPrefix(line, "| containerd/kata | · | · | 25.0 |") {
			continue
		}
		cells := strings.Split(line, " | ")
		sum := 0.0
		for _, c := range cells[1:10] {
			if v, err := strconv.ParseFloat(c, 64); err == nil {
				sum += v
			}
		}
		if got := cells[10]; got != page.MiB(sum*(1<<20)) {
			t.Errorf("the roles are %.1f and the sum %s: %s", sum, got, line)
		}
		return
	}
	t.Error("no row of Kata, idle")
}

func TestInShortIsPerSandboxAtTheFewest(t *testing.T) {
	t.Parallel()
	w := four()
	w.Tables = w.Tables[1:] // 5 sandboxes are the fewest
	out := text(t, w, "md")
	_, table, ok := strings.Cut(out, "### in short\n")
	if !ok {
		t.Fatal("there is none")
	}
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{
		"| target | one idle MiB | outside pod | CPU m | one more MiB | engine says | podFixed |",
		"| runc | 1.2 | 0.8 | 0.0 | 1.2 ±0.0 | · | · |",
		"| containerd/runsc | 39.3 | 10.1 | 3.3 | 40.2 ±1.6 | · | 48Mi 10m |",
		"| containerd/kata | 376 | 376 | 5.9 | 376 ±15.0 | 12.0 | 416Mi 250m |",
		"with 5 sandboxes",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
	if !strings.HasPrefix(out[strings.Index(out, "### "):], "### in short") {
		t.Error("something stands before it")
	}
}

func TestInShortSaysWhereAFigureIsTooSmall(t *testing.T) {
	t.Parallel()
	out := text(t, broken(), "md")
	_, table, _ := strings.Cut(out, "### in short\n")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{"| ≥ 1.2 |", "| ≥ 0.0 |", "| containerd/runsc | · | · | · | · |", "too small"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
}

func TestWhatASlopeDoesNotCountIsSaid(t *testing.T) {
	t.Parallel()
	w := four()
	if out := text(t, w, "md"); strings.Contains(out, "charged memory only") || strings.Contains(out, "| counting |") {
		t.Error("said of what counts all")
	}
	w.Scaling[1].ChargedOnly = true
	w.Scaling[3].Slopes[ofTotal].Estimate = figure.Estimate{N: 6, Value: float64(mebi(380)), Lo: float64(mebi(370)), Hi: float64(mebi(390)), Bounded: true}
	w.Scaling[3].Slopes[ofMemory].Reasons, w.Scaling[3].Slopes[ofCache].Reasons = []string{"2 of 6 values left out"}, []string{"2 of 6 values left out", "\x1b[2Jfew"}
	out := text(t, w, "md")
	for _, want := range []string{
		"| 3723 3590…3856 | charged memory only |", "| 76 73…79 | · |", "fewer may fit", "| 380 370…390 |", "total: memory and uncharged as one line",
		"containerd/kata, memory, cache: 2 of 6 values left out<", `containerd/kata, cache: \\x1b\[2Jfew<`,
	} {
		if !strings.Contains(out, want) {
			_, part, _ := strings.Cut(out, "### one more")
			t.Errorf("no %q in:\n%.2000s", want, part)
		}
	}
}

func TestACheckSaysWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	w := four()
	w.Check = w.Check[:1]
	w.Check[0].Enough = false
	w.Check[0].Phases[1] = CheckPhase{Phase: "1G", Sandboxes: 1}
	out := text(t, w, "md")
	for _, want := range []string{"for containerd/runsc: not proven, not measured: 1G, 1 sandbox", "| 1G, 1 sandbox | not measured | not measured |"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	w.Check[0].Phases[0].MemoryEnough = false
	if out := text(t, w, "md"); !strings.Contains(out, "not enough, first in idle, 1 sandbox") {
		t.Error("what was found wanting does not come before what was not measured")
	}
	if f := figure.Find(w.Figures(), "needed", "target", "containerd/runsc", "phase", "1G"); f.Known() || f.Verdict != "not measured" {
		t.Errorf("a figure of what was not measured: %+v", f)
	}
}

func TestOfASharedGroupOnlyWhoAndWhereIsShown(t *testing.T) {
	t.Parallel()
	w := four()
	out := text(t, w, "md")
	_, table, _ := strings.Cut(out, "### idle, 1 sandbox: where it is charged")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{
		"| docker/runc | pod | 1 | 0.3 | 2.1 | 2.2 | 2048 | 0.0 | workload |",
		"| docker/runc | shared | 2 | 3.9 | · | · | · | · | shim | /system.slice/docker.service |",
		"| containerd/kata | overhead | 1 | 365 | 371 | 390 | none | 0.0 | vmm virtiofs shim |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no line %q in:%s", want, table)
		}
	}
	if strings.Contains(table, "184") || strings.Contains(table, "| / |") || strings.Contains(table, "daemon shim") {
		t.Errorf("figures of all the node are shown:%s", table)
	}
}

func TestFailedPhasesAreCountedAndSaid(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "md"} {
		out := text(t, broken(), format)
		for _, want := range []string{"failed 7/12 phases", "no figures: containerd/kata", "docker/runc: 1/3 rounds failed", "containerd/runsc: 3/3 rounds failed", "≥ 6.0"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in:\n%s", format, want, out)
			}
		}
		if out := text(t, four(), format); !strings.Contains(out, "failed 0/48 phases") {
			t.Errorf("%s: nothing failed, and it does not say so", format)
		}
	}
}
