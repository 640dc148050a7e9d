package bpflist

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// made is a listing of a node of eight CPUs, two seconds after another: a mesh's
// program that used 12.99 % of a core, one that nobody knows and whose memory is not
// known, and one with a name that a terminal would act on.
func made(t *testing.T) (l, before *bpfstat.Listing) {
	t.Helper()
	var listings [2]*bpfstat.Listing
	must.OK(t, json.Unmarshal([]byte(must.Read(t, "testdata/listings.json")), &listings))
	return listings[1], listings[0]
}

func view(t *testing.T) *View {
	t.Helper()
	l, before := made(t)
	v := newView(l, before, 8)
	v.Time, v.Counted, v.Before = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), true, true
	return v
}

func TestRenderings(t *testing.T) {
	v := view(t)
	l, _ := made(t)
	still := newView(l, nil, 8)
	still.Time = v.Time
	for name, write := range map[string]func(b *strings.Builder) error{
		"interval.txt":         func(b *strings.Builder) error { return v.writeText(b, 0, false) },
		"interval.json":        func(b *strings.Builder) error { return term.WriteJSON(b, v, true) },
		"interval.csv":         func(b *strings.Builder) error { return v.writeCSV(b, true) },
		"interval.openmetrics": func(b *strings.Builder) error { return v.writeOpenMetrics(b) },
		"one-reading.txt":      func(b *strings.Builder) error { return still.writeText(b, 0, false) },
		"one-reading.csv":      func(b *strings.Builder) error { return still.writeCSV(b, true) },
		"screen.txt":           func(b *strings.Builder) error { b.WriteString(strings.Join(v.lines(40), "\n") + "\n"); return nil },
		"screen-short.txt":     func(b *strings.Builder) error { b.WriteString(strings.Join(v.lines(8), "\n") + "\n"); return nil },
		"nothing.txt": func(b *strings.Builder) error {
			return newView(&bpfstat.Listing{}, nil, 8).writeText(b, 0, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			must.OK(t, write(&b))
			for line := range strings.Lines(b.String()) {
				if line = strings.TrimSuffix(line, "\n"); term.Clean(line) != line {
					t.Errorf("a terminal would act on %q", line)
				}
			}
			golden.Same(t, "testdata/"+name, b.String())
		})
	}
}

func TestAScreenShowsNoMoreLinesThanItHas(t *testing.T) {
	v := view(t)
	for height := 1; height < 30; height++ {
		if n := len(v.lines(height)); n > height {
			t.Errorf("%d lines on a screen of %d", n, height)
		}
	}
}

func TestSharesAreOfOneCoreAndOfTheNode(t *testing.T) {
	v := view(t)
	r := v.Programs[0].Rate
	if r.Runs != 1_000_000 || r.PerSec != 500_000 || r.Mean != 259.8 || r.Core != 0.1299 || r.Node != 0.1299/8 || r.Misses != 2 {
		t.Errorf("%+v", r)
	}
	// Map 12 is there once, though two programs use it, and 16 though none does.
	if want := int64(8192 + 4096 + 5767168 + 2048 + 12288 + 4096 + 65536); v.Total.Memory != want || v.Total.Shared != 1 || v.Total.Maps != 4 {
		t.Errorf("%+v, want %d bytes", v.Total, want)
	}
	if v.Came != 1 || v.Went != 1 {
		t.Errorf("%d came and %d went, want one each", v.Came, v.Went)
	}
}
