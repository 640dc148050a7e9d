package instrument_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// linesOf are the lines of a stored record, the header first.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	return slices.Collect(strings.Lines(must.Read(t, stored+"/"+name+".jsonl")))
}

// judgedOf judges a record of lines, and returns the codes of its findings.
func judgedOf(t *testing.T, lines []string) (instrument.Judged, []string) {
	t.Helper()
	types, err := all.Instruments.Lines()
	must.OK(t, err)
	rec, err := types.Read(strings.NewReader(strings.Join(lines, "")))
	must.OK(t, err)
	j := judged(t, rec)
	var codes []string
	_, _, found := j.Result()
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	return j, codes
}

// A cut may be in the middle of a line.
func TestARecordThatIsCutOffAnywhereIsJudgedUpToThere(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		lines, whole := linesOf(t, name), load(t, name)
		text := strings.Join(lines, "")
		for cut := len(lines[0]); cut < len(text)-2; cut += len(text)/20 + 1 {
			j, codes := judgedOf(t, []string{text[:cut]})
			if j.Record.End != nil || j.Record.ProblemCount > 0 || !slices.Contains(codes, finding.CutOff) {
				t.Errorf("%s cut at %d: end %v, %v, findings %q", name, cut, j.Record.End, j.Record.Problems, codes)
			}
			if n := len(j.Record.Batches); n > 0 && !reflect.DeepEqual(j.Record.Batches, whole.Batches[:n]) {
				t.Errorf("%s cut at %d: the %d batches are not the first of those written", name, cut, n)
			}
		}
	}
}

func TestLinesThatAreThereTwiceCountOnce(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		if strings.HasPrefix(name, "startup") || name == "storage" {
			continue // starts and a volume's places have no number by which two are one
		}
		lines := linesOf(t, name)
		once, _ := judgedOf(t, lines)
		last := len(lines) - 1
		twice, codes := judgedOf(t, slices.Concat(lines[:last], lines[1:last], lines[last:]))
		a, b := once.Figures(), twice.Figures()
		if len(a) != len(b) {
			t.Errorf("%s: %d figures of twice as many lines, not %d", name, len(b), len(a))
			continue
		}
		for i := range a {
			if digits(t, a[i]) != digits(t, b[i]) {
				t.Errorf("%s: %s %s is %s and of doubled lines %s", name, a[i].Quantity, a[i].Labels, digits(t, a[i]), digits(t, b[i]))
				break
			}
		}
		if !slices.Contains(codes, finding.Damaged) {
			t.Errorf("%s: findings %q", name, codes)
		}
	}
}

func TestEveryInstrumentJudgesItsOwnRecordsWithAPlan(t *testing.T) {
	t.Parallel()
	for _, one := range all.Instruments {
		for _, h := range []record.Header{{Experiment: "another", Plan: []byte("{}")}, {Experiment: one.Name, Plan: []byte("[1]")}} {
			if _, err := one.Judge(&record.Record{Header: h}); err == nil {
				t.Errorf("%s judges %+v", one.Name, h)
			}
		}
	}
}
