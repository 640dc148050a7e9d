//go:build prove

package proof

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// pairs is the number of real pairs to compare. Fewer pairs prove less.
var pairs = flag.Int("pairs", 60, "number of real pairs to compare")

const (
	gateRounds = 20
	gateMargin = 0.025 // half the smallest change to detect
	// A 95 % interval ends 1.96 standard errors from the estimate. If a change exceeds
	// the margin by 2.8 standard errors, it is found in 80 % of cases. feasible is the
	// ratio of these factors.
	feasible = 1.96 / 2.8
)

// gated is the JSON output of tare gate.
type gated struct {
	Figures []struct {
		Verdict  string
		Estimate struct{ Value float64 }
		Versus   struct{ Shift struct{ Value float64 } }
	}
}

// waiting writes a runtime that waits before it creates. Both runtimes of a pair are the
// same script, so only the length of the wait differs.
func waiting(t *testing.T, path string, seconds float64) {
	t.Helper()
	runc := need.Tool(t, "runc")
	script(t, path, "#!/bin/sh\ncase \" $* \" in *\" create \"*) sleep %.6f;; esac\nexec %s \"$@\"\n", seconds, runc)
}

// gate runs tare gate, which must exit with one of the given codes.
func (p *place) gate(t *testing.T, n int, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(p.dir, fmt.Sprintf("gate-%d.jsonl", n))
	return invoke(t, append(append([]string{"gate"}, args...), "--ops", "create", "--rounds", strconv.Itoa(gateRounds), "--worse", fmt.Sprint(gateMargin), "--format", "json", "-q", "-o", path)...)
}

// floor returns the noise of this machine in an A/A comparison, as a share of the old
// wait.
func (p *place) floor(t *testing.T, old string, n int, wait float64) float64 {
	t.Helper()
	waiting(t, filepath.Join(p.dir, "old"), wait)
	_, _, said := p.gate(t, n, "--self", old)
	found := regexp.MustCompile(`resolves a margin of (\S+) %`).FindStringSubmatch(said)
	must.That(t, found != nil, "no resolved margin in %s", said)
	percent, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		percent = math.Inf(1)
	}
	return percent / 100
}

// The new runtime of each real pair takes 0, 2, 5 or 10 % longer. A gate of 2.5 % fails
// pairs of 0 and 2 % in at most 2 % of cases. It finds changes of 5 and 10 % in 80 % if
// an initial A/A comparison shows little enough noise. An operation that is too noisy
// gets an additional wait on both sides.
func TestGatesOfRealPairs(t *testing.T) {
	p := folders(t)
	old, new := "old="+filepath.Join(p.dir, "old"), "new="+filepath.Join(p.dir, "new")
	var floor, wait float64
	for i, longer := range []float64{0, 0.05, 0.1} { // seconds
		wait = longer
		if floor = p.floor(t, old, -i, wait); floor <= feasible*(0.05-gateMargin) {
			break
		}
		t.Logf("too noisy with a wait of %g ms: this machine resolves a margin of %.1f %%", 1000*wait, 100*floor)
	}
	operation := 0.1 // seconds; of the previous pair
	added := []float64{0, 0.02, 0.05, 0.10}
	asked, stopped, passed := map[float64]int{}, map[float64]int{}, map[float64]int{}
	for i := range *pairs {
		add := added[i%len(added)]
		waiting(t, filepath.Join(p.dir, "new"), wait+add*operation)
		code, text, stderr := p.gate(t, i+1, "--interleave", old, new)
		var g gated
		err := json.Unmarshal([]byte(text), &g)
		must.That(t, err == nil && len(g.Figures) == 1 && code != cli.ExitUsage, "exit %d, %v\n%s\n%s", code, err, text, stderr)
		f := g.Figures[0]
		operation = f.Estimate.Value / (1 + f.Versus.Shift.Value) / 1e9
		asked[add]++
		switch f.Verdict {
		case "worse":
			stopped[add]++
		case "not worse":
			passed[add]++
		}
		t.Logf("%2.0f %% more: %+.1f %%, %s", 100*add, 100*f.Versus.Shift.Value, f.Verdict)
	}
	var table strings.Builder
	for _, add := range added {
		fmt.Fprintf(&table, "\n%3.0f %% more: %d pairs, %d worse, %d not worse", 100*add, asked[add], stopped[add], passed[add])
	}
	t.Logf("operation of %.0f ms, including a wait of %g ms; this machine resolves a margin of %.1f %%%s", 1000*operation, 1000*wait, 100*floor, &table)
	wrong, of := stopped[0]+stopped[0.02], asked[0]+asked[0.02]
	if p := (stats.BinomialDist{N: of, P: 0.02}); wrong > 0 && 1-p.CDF(float64(wrong-1)) < 0.05 {
		t.Errorf("%d of %d equal pairs were reported as worse, want at most 2 %%", wrong, of)
	}
	for _, add := range []float64{0.05, 0.10} {
		if floor > feasible*(add-gateMargin) {
			t.Logf("not judged: too noisy for a change of %.0f %%", 100*add)
		} else if float64(stopped[add]) < 0.8*float64(asked[add]) {
			t.Errorf("found %d of %d changes of %.0f %%, want at least 80 %%", stopped[add], asked[add], 100*add)
		}
	}
}
