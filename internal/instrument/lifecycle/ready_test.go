package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject"
)

// asked has the host and a pair asked: of the host's workload all polls but the last were in
// vain, the others' were ready when they were asked first.
func asked() *run {
	r := pair(1)
	for i := range r.rec.Batches {
		b := &r.rec.Batches[i]
		for k := range b.Samples {
			s := &b.Samples[k]
			if b.Op != string(subject.Run) || s.Failure != nil {
				continue
			}
			s.Ready, s.Polls, s.Request = s.First+300_000_000, 1, 400_000
			if b.Target == r.rec.Targets[0].Name {
				s.Polls, s.Unready = 400, s.Ready-800_000-int64(b.Round)*10_000
			}
		}
	}
	return r
}

func TestReadyIsAMomentWithItsResolution(t *testing.T) {
	t.Parallel()
	_, j := asked().judged(t)
	found := map[string]int{}
	for _, f := range j.Figures() {
		if f.Labels.Get("op") == string(subject.Run) {
			found[f.Quantity+f.Labels.Get("stamp")+f.Labels.Get("quantile")]++
		}
	}
	for quantity, n := range map[string]int{"time-toready": 3, "ready-resolutionp50": 1, "ready-resolutionmax": 1, "first-request": 3} {
		if found[quantity] != n {
			t.Errorf("%s: %d figures, want %d", quantity, found[quantity], n)
		}
	}
	text := rendered(t, asked(), "text", page.Options{Width: 120, Verbose: true})
	for _, want := range []string{" known to ", " at worst ", "first request 400 µs", "at most in 10 of 10: ready when first asked"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.TrimSpace(want)) {
			t.Errorf("nothing says %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "ready "); is && (strings.Count(at, "≤ ") != 2 || strings.Contains(at, "≤ 300 ms")) {
			t.Errorf("of the three targets but the host's it is the latest that can be: %s", line)
		}
	}
}
