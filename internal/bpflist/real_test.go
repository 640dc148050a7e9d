package bpflist

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// busy loads a program that runs continuously until the test ends.
func busy(t *testing.T) (id uint32) {
	t.Helper()
	need.Root(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "tare_t_list", Type: ebpf.SocketFilter, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	must.OK(t, err)
	i := must.Get(p.Info())(t)
	known, _ := i.ID()
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 100})
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		p.Close()
	})
	return uint32(known)
}

// statistics reports whether this process has an open descriptor that enables statistics.
func statistics(t *testing.T) bool {
	t.Helper()
	list := must.Get(os.ReadDir("/proc/self/fd"))(t)
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(target, "bpf-stats") {
			return true
		}
	}
	return false
}

func TestRunningProgramHasARate(t *testing.T) {
	id := busy(t)
	var b strings.Builder
	o := Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Interval: 2 * time.Second, Format: formatJSON} // long enough for the program to run on any machine
	must.OK(t, Run(t.Context(), &b, o))
	var v View
	must.OK(t, json.Unmarshal([]byte(b.String()), &v))
	must.That(t, len(v.Programs) == 1 && v.Programs[0].Rate != nil, "%+v", v)
	p := v.Programs[0]
	r := p.Rate
	check.That(t, p.ID == id && p.Memory > 0 && r.Runs != 0 && r.Core > 0 && r.Core <= float64(v.CPUs) && r.Mean > 0, "%+v, %+v", p, r)
	check.That(t, v.Interval >= 2 && v.Counted, "an interval of %v s, statistics %v", v.Interval, v.Counted)
	check.That(t, !statistics(t), "statistics are still on")
}

// until is a writer that calls cancel after a number of lines.
type until struct {
	strings.Builder
	lines  int
	cancel context.CancelFunc
}

func (u *until) Write(b []byte) (int, error) {
	n, err := u.Builder.Write(b)
	if strings.Count(u.String(), "\n") >= u.lines {
		u.cancel()
	}
	return n, err
}

func TestCanceledWatchDisablesStatistics(t *testing.T) {
	id := busy(t)
	for _, format := range []string{formatText, formatJSON} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := &until{lines: 3, cancel: cancel}
			err := Run(ctx, out, Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Interval: 20 * time.Millisecond, Watch: true, Format: format})
			check.That(t, errors.Is(err, context.Canceled), "Run returned %v, want %v", err, context.Canceled)
			check.That(t, !statistics(t), "statistics are still on")
		})
	}
}

func TestOpenMetricsNeedsNoInterval(t *testing.T) {
	id := busy(t)
	var b strings.Builder
	must.OK(t, Run(t.Context(), &b, Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Format: formatOpenMetrics}))
	text := b.String()
	check.That(t, strings.HasSuffix(text, "# EOF\n") && strings.Contains(text, `name="tare_t_list"`), "output: %s", text)
}

func TestTotalsAreSummarizedAndInvalidOptionsRefused(t *testing.T) {
	golden.Lines(t, "testdata/words.txt", func(t *testing.T, line string) (any, error) {
		what, text, _ := strings.Cut(line, " ")
		var total Total
		var o Options
		if what == "total" {
			must.OK(t, json.Unmarshal([]byte(text), &total))
			return total.words(), nil
		}
		must.OK(t, json.Unmarshal([]byte(text), &o))
		return "listed", Run(t.Context(), &strings.Builder{}, o)
	})
}

// made returns two listings of a node with eight CPUs, taken two seconds apart. One
// program belongs to a service mesh and used 12.99 % of a core. Another has an unknown
// owner and unknown memory. The name of a third contains terminal controls.
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
		"interval.txt":         func(b *strings.Builder) error { return v.writeText(b, 0, false, Selection{}) },
		"interval.json":        func(b *strings.Builder) error { return term.WriteJSON(b, v, true) },
		"interval.openmetrics": func(b *strings.Builder) error { return v.writeOpenMetrics(b) },
		"one-reading.txt":      func(b *strings.Builder) error { return still.writeText(b, 0, false, Selection{}) },
		"screen.txt":           func(b *strings.Builder) error { return drawn(b, screenOf(v), 40) },
		"screen-short.txt":     func(b *strings.Builder) error { return drawn(b, screenOf(v), 9) },
		"nothing.txt": func(b *strings.Builder) error {
			return newView(&bpfstat.Listing{}, nil, 8).writeText(b, 0, false, Selection{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			must.OK(t, write(&b))
			for line := range strings.Lines(b.String()) {
				if line = strings.TrimSuffix(line, "\n"); term.Clean(line) != line {
					t.Errorf("unescaped terminal controls in %q", line)
				}
			}
			golden.Same(t, "testdata/"+name, b.String())
		})
	}
}

func screenOf(v *View) *screen { return &screen{view: v, Selection: Selection{Sort: "core"}} }

func drawn(b *strings.Builder, s *screen, height int) error {
	b.WriteString(strings.Join(s.lines(height), "\n") + "\n")
	return nil
}

func TestKeysSortAndScroll(t *testing.T) {
	s := screenOf(view(t))
	for _, c := range []struct{ claim, keys, want string }{
		{"by CPU time, the largest first", "", "41 43 50 42"},
		{"r reverses, and an unknown number stays last", "r", "42 50 43 41"},
		{"> sorts by the next column", "r>", "41 43 50 42"},
		{"< sorts by the column before, words ascend", "<<<<", "50 41 43 42"},
		{"the first column is next to the last", "<<>>", "50 41 43 42"},
		{"by memory, unknown is last", ">>>>>>", "41 50 43 42"},
		{"and last in reverse", "r", "50 43 41 42"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			check.Equal(t, "ids", strings.Join(pressed(s, c.keys, 40), " "), c.want)
		})
	}
	for _, c := range []struct{ claim, keys, want string }{
		{"a screen of nine lines shows one program", "r", "41"},
		{"j scrolls down", "j", "50"},
		{"G goes to the end, and no further", "Gj", "42"},
		{"k scrolls up", "k", "43"},
		{"g goes to the start, and no further", "gk", "41"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			check.Equal(t, "ids", strings.Join(pressed(s, c.keys, 9), " "), c.want)
		})
	}
	_, ended := s.press(tea.Key{Code: 'q', Text: "q"})
	check.That(t, ended, "q does not end the view")
}

// pressed returns the ids that a screen shows after keys.
func pressed(s *screen, keys string, height int) (ids []string) {
	for _, k := range keys {
		s.press(tea.Key{Code: k, Text: string(k)})
	}
	lines := s.lines(height)
	titles := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "KIND") })
	for _, line := range lines[titles+1 : len(lines)-1] {
		ids = append(ids, strings.Fields(line)[0])
	}
	return ids
}

func TestColumnsAreChosenByName(t *testing.T) {
	var b strings.Builder
	must.OK(t, view(t).writeText(&b, 0, false, Selection{Sort: "in-maps", Reverse: true, Columns: []string{"name", "in-maps"}}))
	first, _, _ := strings.Cut(b.String(), "\n")
	check.Equal(t, "titles", strings.Join(strings.Fields(first), " "), "NAME IN MAPS")
	for name, o := range map[string]Options{"--columns": {Selection: Selection{Columns: []string{"core", "mem"}}}, "--sort": {Selection: Selection{Sort: "cores"}}} {
		err := o.Check()
		check.That(t, err != nil && strings.Contains(err.Error(), "unknown column") && strings.Contains(err.Error(), "in-maps"), "%s: %v", name, err)
	}
}

func TestListingFitsTheScreenHeight(t *testing.T) {
	v := view(t)
	for height := 1; height < 30; height++ {
		n := len(screenOf(v).lines(height))
		check.That(t, n <= height, "%d lines on a screen of %d", n, height)
	}
}

func TestRatesArePerCoreAndPerNode(t *testing.T) {
	v := view(t)
	r := v.Programs[0].Rate
	check.That(t, r.Runs == 1_000_000 && r.PerSec == 500_000 && r.Mean == 259.8 && r.Core == 0.1299 && r.Node == 0.1299/8 && r.Misses == 2,
		"%+v", r)
	// Map 12 is counted once, although two programs use it. Map 16 is counted, although
	// no program uses it.
	want := int64(8192 + 4096 + 5767168 + 2048 + 12288 + 4096 + 65536)
	check.That(t, v.Total.Memory == want && v.Total.Shared == 1 && v.Total.Maps == 4, "%+v, want %d bytes", v.Total, want)
	check.That(t, v.Came == 1 && v.Went == 1, "%d programs added and %d removed, want 1 and 1", v.Came, v.Went)
}

func TestNoProgramsAndNoMatchesAreDistinguished(t *testing.T) {
	chosen := bpfstat.Filter{Names: []string{"a*", "\x1b[2J"}, Owners: []string{"7"}, Kmesh: true}
	for name, c := range map[string]struct {
		filter bpfstat.Filter
		view   View
		wants  string // part of the error; "": no error
		text   string
	}{
		"no program is loaded":              {bpfstat.Filter{}, View{}, "", "no program is loaded\n"},
		"no program is loaded, with filter": {chosen, View{}, "none is loaded at all", "no program is loaded\n"},
		"no program matches": {chosen, View{loaded: 12}, `12 programs are loaded, but none matches --kmesh, --name "a*", --name "\x1b[2J", --owner "7"`,
			"12 programs are loaded, but none matches the filter\n"},
		"the only program does not match": {chosen, View{loaded: 1}, "1 program is loaded, but none", "1 program is loaded, but none"},
		"one program matches":             {chosen, View{Programs: []Program{{Program: record.Program{ID: 1, Kind: "xdp"}}}}, "", "xdp"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shown{options: Options{Filter: c.filter}, view: &c.view}
			err := s.found()
			check.That(t, (err == nil) == (c.wants == "") && (err == nil || errors.Is(err, errNotFound) && strings.Contains(err.Error(), c.wants)), "%v", err)
			var b strings.Builder
			err = c.view.writeText(&b, 0, false, Selection{})
			check.That(t, err == nil && strings.Contains(b.String(), c.text), "%v: %s", err, b.String())
		})
	}
}

func TestNewProgramsAreDescribedAtTheEndOfAnInterval(t *testing.T) {
	soon := collector{listing: &bpfstat.Listing{}, described: time.Now(), took: time.Hour}
	check.That(t, soon.due(true) && !soon.due(false), "new programs are not described, or known ones are described again")
	if soon.watch = true; soon.due(true) {
		t.Error("a watch describes programs on every reading, although that takes an hour")
	}
}

func TestUnmatchedFilterReportsTheNumberOfPrograms(t *testing.T) {
	busy(t)
	var b strings.Builder
	err := Run(t.Context(), &b, Options{Filter: bpfstat.Filter{Names: []string{"tare_t_nosuch"}}})
	check.That(t, errors.Is(err, errNotFound) && strings.Contains(err.Error(), `loaded, but none matches --name "tare_t_nosuch"`) &&
		strings.Contains(b.String(), "loaded, but none matches the filter"), "%v\n%s", err, b.String())
}

func TestLiveViewFitsItsScreen(t *testing.T) {
	s := (&shown{}).watch(nil)
	if lines := s.Draw(50, 8); len(lines) != 1 {
		t.Errorf("before the first reading: %q", lines)
	}
	s.Show(view(t))
	lines := s.Draw(50, 8)
	check.That(t, len(lines) == 8 && strings.HasPrefix(lines[7], "1 to 1 of 4  q quit") && strings.Contains(lines[6], "ID"), "%d lines of 8: %q", len(lines), lines)
	for _, line := range lines {
		check.That(t, term.Width(line) <= 50, "%q is wider than 50", line)
	}
}
