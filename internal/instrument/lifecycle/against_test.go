package lifecycle_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

func isuladReport(t *testing.T) *published.Report {
	t.Helper()
	p := must.Get(published.Load("published/isulad-2020"))(t)
	return p
}

func judgedAs(t *testing.T, runs ...*run) (all []instrument.Judged) {
	t.Helper()
	for i, r := range runs {
		r.rec.Header.RunID = "run" + strconv.Itoa(i+1)
		rec, l := r.judged(t)
		all = append(all, instrument.Judged{Record: rec, Judgement: l})
	}
	return all
}

func against(t *testing.T, format string, o page.Options, runs ...*run) string {
	t.Helper()
	p, _ := beside.Page(judgedAs(t, runs...), isuladReport(t), o)
	var out bytes.Buffer
	must.OK(t, page.Write(&out, format, []*page.Page{p}, o))
	return out.String()
}

func client(lanes ...int) *run {
	r := newRun(lanes, subject.ContainerOps...)
	for i, name := range []string{"crun", "docker/runc", "podman/runc"} {
		r.runtime(name, strconv.Itoa(i+1)+".0")
		for j, op := range subject.ContainerOps {
			for _, n := range lanes {
				r.times(name, op, n, int64((i+1)*(j+1)*n)*10_000, 10)
			}
		}
	}
	return r
}

// measures returns two pod measures: a pod alone and a pod with a container.
func measures() (alone, container *run) {
	alone, container = newRun([]int{1, 100}, subject.PodOps...), newRun([]int{1, 100}, subject.Run, subject.Stop, subject.Remove)
	for _, r := range []*run{alone, container} {
		for i, name := range []string{"cri+cri-dockerd/runc", "cri+cri-o/runc", "cri+containerd/runc"} {
			r.cri(name, strconv.Itoa(i+1)+".0")
			for j, op := range subject.Ops {
				for _, n := range []int{1, 100} {
					r.times(name, op, n, int64((i+1)*(j+1)*n)*10_000, 10)
				}
			}
		}
	}
	return alone, container
}

func TestPublishedComparisonGolden(t *testing.T) {
	alone, container := measures()
	failed := client(1, 20)
	failed.fail("docker/runc", subject.Create, 3, record.Failure{Kind: record.FailError, Detail: "no space left"})
	golden.Same(t, "testdata/against.md", against(t, "md", page.Options{}, failed))
	within(t, against(t, "text", page.Options{Width: 80}, failed, alone, container), 80)
}

func TestPublishedAndOwnFiguresAreComparable(t *testing.T) {
	alone, container := measures()
	for name, tt := range map[string]struct {
		runs []*run
		want []string
		none string
	}{
		"columns by engine": {[]*run{client(1, 100)}, []string{
			"| theirs: Docker | ours: docker/runc | theirs: Podman | ours: podman/runc | theirs: iSula | ours: crun |",
			"| create | 287 ms | 20 ms | 180 ms | 30 ms | 131 ms | 10 ms |",
			"| 100 * run | 28091 ms | 10000 ms | 16280 ms | 15000 ms | 9015 ms | 5000 ms |",
			"it prints -92.33% against Podman; its averages, 10943 and 926, give -91.54%",
		}, "theirs: CRIO | ours"},
		"several records in their tables": {[]*run{client(1), alone, container}, []string{
			"| theirs: Docker | ours: cri+cri-dockerd/runc, run run2 | theirs: CRIO | ours: cri+cri-o/runc, run run2 | theirs: iSula | ours: cri+containerd/runc, run run2 |",
			"| 100 * runp | 13998 ms | 1000 ms | 4946 ms | 2000 ms | 3887 ms | 3000 ms |",
			"| 100 * rm | 4415 ms | 5000 ms | 3739 ms | 10000 ms | 1524 ms | 15000 ms |",
			"theirs by the dockershim of kubelet, ours by cri-dockerd",
		}, "| theirs: Docker | ours: docker/runc, run run1 | ours: cri"},
		"different lanes without equal ones": {[]*run{client(1, 20, 50)}, []string{
			"| theirs: Docker | ours: docker/runc, 20 lanes | ours: docker/runc, 50 lanes |",
			"| 100 * create | 4995 ms | 400 ms | 1000 ms |",
		}, "docker/runc, 1 lanes"},
		"equal lanes":                          {[]*run{client(1, 20, 100)}, []string{"| 100 * create | 4995 ms | 2000 ms |"}, "20 lanes"},
		"many lanes are not compared with one": {[]*run{client(20)}, []string{"| create | 287 ms | 180 ms | 131 ms |"}, "| create | 287 ms | 400"},
		"same target of two runs": {[]*run{client(1), client(1)}, []string{
			"| theirs: Docker | ours: docker/runc, run run1 | ours: docker/runc, run run2 |"}, "| ours: docker/runc |"},
	} {
		out := against(t, "md", page.Options{}, tt.runs...)
		for _, want := range tt.want {
			check.That(t, strings.Contains(out, want), "%s: not in it: %s", name, want)
		}
		if strings.Contains(out, tt.none) {
			t.Errorf("%s: in it: %s", name, tt.none)
		}
	}
}

func TestOwnRatiosUseOneRunAndMethod(t *testing.T) {
	r := newRun([]int{1}, subject.PodOps...)
	for i, name := range []string{"cri+cri-o/runc", "cri+isulad/runc", "cri+isulad+cli/runc"} {
		r.cri(name, "1.0")
		for _, op := range subject.Ops {
			r.times(name, op, 1, int64(4-2*min(i, 1))*10_000_000, 10)
		}
	}
	out := against(t, "md", page.Options{}, r)
	for _, want := range []string{"| theirs: VS CRIO | ours: cri+isulad/runc VS cri+cri-o/runc |", "| -25.55% | -50.00% |"} {
		check.Contains(t, "report", out, want)
	}
	if strings.Contains(out, "ours: cri+isulad+cli/runc VS") {
		t.Error("compared a command line with an API")
	}
	if out := against(t, "md", page.Options{}, client(1), r); strings.Contains(out, "VS docker") {
		t.Error("compared two runs")
	}
}

func TestPublishedAndOwnFiguresAreNotSubtracted(t *testing.T) {
	alone, container := measures()
	for _, format := range []string{"text", "md"} {
		out := against(t, format, page.Options{Width: 120}, client(1, 20), alone, container)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), "a difference between them says nothing about the engines, so none is computed") {
			t.Errorf("%s does not state that the machines differ", format)
		}
		theirs := strings.Index(out, "published claims that their own figures contradict") // comparisons within their figures, on one machine
		out = out[:theirs] + out[theirs+strings.Index(out[theirs:], "how they measured"):]
		for _, word := range []string{"p<", "p=", "faster", "slower"} {
			if strings.Contains(out, word) {
				t.Errorf("%s has a verdict: %q", format, word)
			}
		}
		// Percentages come only from their report and from this run, which has no iSulad.
		printed := []string{"-92.33%", "-91.54%"}
		for _, table := range isuladReport(t).Tables {
			for _, row := range table.Rows {
				printed = append(printed, row.Versus...)
			}
		}
		for word := range strings.FieldsSeq(out) {
			if strings.Contains(word, "%") && !slices.Contains(printed, strings.TrimSuffix(word, "</sub>")) {
				t.Errorf("%s: unexpected difference: %s", format, word)
			}
		}
	}
}

func TestBothSidesHaveFigures(t *testing.T) {
	ours := judgedAs(t, client(1, 20))
	_, all := beside.Page(ours, isuladReport(t), page.Options{})
	if f := figure.Find(ours[0].Figures(), "trimmed-mean", "target", "crun", "op", "create", "lanes", "1"); f.Value != 10e6 {
		t.Errorf("ours: got %+v", f)
	}
	for _, tt := range []struct {
		labels []string
		want   float64 // ms
	}{
		{[]string{"side", "theirs", "table", "client-x86-containers-1", "row", "create", "column", "docker"}, 287},
		{[]string{"side", "theirs", "table", "cri-arm-pods-100", "row", "100 * rmp", "column", "cri-isula"}, 1790},
	} {
		if f := figure.Find(all, "trimmed-mean", tt.labels...); f.Estimate.Value != tt.want*1e6 || f.Unit != figure.Nanoseconds {
			t.Errorf("%v: got %+v", tt.labels, f)
		}
	}
}

func TestISuladFormatHasEveryPublishedTable(t *testing.T) {
	p := isuladReport(t)
	for _, table := range p.Tables {
		var ops []subject.Op
		for _, row := range table.Rows {
			ops = append(ops, subject.Op(row.Op))
		}
		r := newRun([]int{table.Lanes}, ops...)
		var names []string
		for _, id := range table.Columns {
			name := p.Column(id).Title
			names = append(names, name)
			r.cri(name, "")
		}
		r.plan.Subject = p.Column(table.Subject).Title
		for _, row := range table.Rows {
			for i, v := range row.Values {
				ms, _ := strconv.ParseFloat(string(v), 64)
				r.times(names[i], subject.Op(row.Op), table.Lanes, int64(ms)*1000, 10)
			}
		}
		out := rendered(t, r, "md", page.Options{})
		if want := "| operation (ms) | " + strings.Join(names, " (avg) | ") + " (avg) | VS " + names[0] + " | VS " + names[1] + " |"; !strings.Contains(out, want) {
			t.Errorf("%s: not in it: %s", table.ID, want)
		}
		for _, row := range table.Rows {
			vs := slices.Clone(row.Versus)
			if row.Note != "" {
				vs[1] = "-91.54%" // the published value is wrong
			}
			cells := []string{row.Label}
			for _, v := range row.Values {
				cells = append(cells, string(v))
			}
			if want := "| " + strings.Join(append(cells, vs...), " | ") + " |"; !strings.Contains(out, want) {
				t.Errorf("%s: not in it: %s", table.ID, want)
			}
		}
	}
}

func TestReportsAreConcatenated(t *testing.T) {
	first, second := client(1), pods(1)
	second.rec.Header.RunID = "run2"
	for _, format := range []string{"text", "md"} {
		got := renderedAll(t, format, page.Options{}, first, second)
		check.Equal(t, format, rendered(t, first, format, page.Options{})+"\n"+rendered(t, second, format, page.Options{}), got)
	}
}
