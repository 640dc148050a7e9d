package browser

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// largest is what a page may weigh whose record holds manySamples.
const (
	manySamples = 100_000
	largest     = 15_000_000
)

// large is a record of so many samples: that of a small run with a hundred lanes for
// each of its batches, over and over.
func large(t testing.TB, samples int) *record.Record {
	t.Helper()
	rec := load(t, stored+"lifecycle.jsonl")
	const lanes = 100
	var pattern []record.Batch
	for _, b := range rec.Batches {
		if b.Phase == record.PhaseMeasure && b.Lanes == 5 && len(b.Samples) > 0 {
			pattern = append(pattern, b)
		}
	}
	last := 0
	for _, b := range pattern {
		last = max(last, b.Round)
	}
	rec.Batches = nil
	for n := 0; n < samples; n += lanes {
		b := pattern[n/lanes%len(pattern)]
		b.Round += n / lanes / len(pattern) * (last + 1)
		b.Lanes, b.Samples = lanes, nil
		for lane := range lanes {
			s := pattern[n/lanes%len(pattern)].Samples[lane%5]
			s.Lane = lane
			// No two are the same, as no two are in a run.
			for _, at := range []*int64{&s.Returned, &s.Running, &s.First, &s.Seen, &s.Exited} {
				if *at > 0 {
					*at += int64(lane*7919 + n%99991)
				}
			}
			b.Samples = append(b.Samples, s)
		}
		rec.Batches = append(rec.Batches, b)
	}
	rec.Header.Plan = bytes.Replace(rec.Header.Plan, []byte(`"lanes":[1,5]`), []byte(`"lanes":[100]`), 1)
	return rec
}

func TestAHundredThousandSamplesAreAPageOfFewMegabytes(t *testing.T) {
	t.Parallel()
	html := report(t, large(t, manySamples))
	t.Logf("%d bytes", len(html))
	if len(html) > largest {
		t.Errorf("%d bytes", len(html))
	}
	p := newTab(t)
	p.show("large", html)
	p.await(drawn)
	if text := eval[string](p, `() => document.querySelector('main').innerText`); !strings.Contains(text, "100 lanes") || eval[int](p, `() => document.querySelectorAll('figure').length`) < 3 {
		t.Errorf("of so many samples it says\n%.2000s", text)
	}
}
