package run

import (
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestLoadMustRunForTheWholeWindow(t *testing.T) {
	span := [2]int64{10e9, 14e9} // first and last check
	for name, c := range map[string]struct {
		kind   overhead.PhaseKind
		output string
		seen   int64 // time at which its end was observed
		short  time.Duration
		want   string
	}{
		"filled before the window":   {overhead.PhaseHold, "tare-hold/1 4096 1000\ntare-held/1 5000000000\n", 15e9, 0, ""},
		"late start, filled fast":    {overhead.PhaseHold, "tare-hold/1 4096 1000\ntare-held/1 5000000000\n", 16e9, time.Second, "only 1s after"},
		"early start, filled late":   {overhead.PhaseHold, "tare-hold/1 4096 6000000000\ntare-held/1 4000000000\n", 14_500e6, time.Second / 2, "only 500ms after"},
		"spinning before the window": {overhead.PhaseSpin, "tare-spun/1 2500000000 5000000000\n", 15e9, 0, ""},
		"late start of spinning":     {overhead.PhaseSpin, "tare-spun/1 2500000000 5000000000\n", 15_250e6, time.Second / 4, "only 250ms after"},
		"ended before the window":    {overhead.PhaseHold, "tare-hold/1 4096 1000\ntare-held/1 5000000000\n", 13_700e6, 300 * time.Millisecond, "ended 300ms before"},
		"late end without output":    {overhead.PhaseHold, "", 99e9, 0, "did not run as configured"},
	} {
		t.Run(name, func(t *testing.T) {
			var work record.Work
			load := &command{results: []result{{Executed: subject.Executed{Output: c.output}, ended: c.seen}}}
			f, short := stood(load, overhead.Phase{Kind: c.kind}, span, &work)
			switch {
			case short != c.short:
				t.Errorf("short of %v, want %v", short, c.short)
			case c.want == "" && f != nil, c.want != "" && (f == nil || f.Kind != record.FailWorkload || !strings.Contains(f.Detail, c.want)):
				t.Errorf("%+v, want %q", f, c.want)
			case c.kind == overhead.PhaseSpin && work.Spun != 0.5:
				t.Errorf("spun %v CPUs, want 0.5", work.Spun)
			}
		})
	}
}
