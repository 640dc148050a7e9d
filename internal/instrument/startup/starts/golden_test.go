package starts

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// read assembles the starts in the given logs.
func read(t testing.TB, readers map[string]io.Reader, order ...string) ([]record.Start, *Builder) {
	t.Helper()
	return readWith(t, func(*Builder) {}, readers, order...)
}

func readWith(t testing.TB, bound func(*Builder), readers map[string]io.Reader, order ...string) ([]record.Start, *Builder) {
	t.Helper()
	var sources []logs.Source
	for _, name := range order {
		sources = append(sources, logs.Source{Name: name, Reader: readers[name]})
	}
	var out []record.Start
	b := New(order, func(s *record.Start, _ int) error {
		if err := record.Validate(s); err != nil {
			t.Errorf("the start of %s: %v", s.Sandbox, err)
		}
		closed(t, s)
		out = append(out, *s)
		return nil
	})
	bound(b)
	if _, err := logs.Read(context.Background(), sources, b.Add); err != nil {
		t.Fatal(err)
	}
	must.OK(t, b.Close())
	return out, b
}

// closed checks that the phases of a start have no holes and that its gaps lie within it.
func closed(t testing.TB, s *record.Start) {
	t.Helper()
	at := s.Began
	for _, x := range s.Spans {
		if x.Kind == record.KindPhase && x.Began != at {
			t.Errorf("%q begins at %d, but the previous phase ends at %d", x.Name, x.Began, at)
		}
		if x.Kind == record.KindPhase {
			at = x.Ended
		}
	}
	if s.Ended != 0 && at != s.Ended {
		t.Errorf("the phases end at %d, but the start at %d", at, s.Ended)
	}
	for _, g := range s.Gaps {
		if g.Began < s.Began || g.Ended > at {
			t.Errorf("gap %+v is outside the start", g)
		}
	}
}

func readFiles(t testing.TB, paths ...string) ([]record.Start, *Builder) {
	t.Helper()
	readers, order := map[string]io.Reader{}, []string{}
	for _, path := range paths {
		f := must.Get(os.Open(path))(t)
		t.Cleanup(func() { f.Close() })
		name := filepath.Base(path)
		readers[name] = f
		order = append(order, name)
	}
	return read(t, readers, order...)
}

// printed formats a start as text, with times in ms since its beginning.
func printed(s *record.Start) string {
	var w strings.Builder
	ms := func(at int64) string { return fmt.Sprintf("%.3f", float64(at-s.Began)/1e6) }
	end := "no end"
	if s.Ended != 0 {
		end = ms(s.Ended) + " ms"
	}
	fmt.Fprintf(&w, "%d %s %s %.12s %q, from %s, %s, %d events\n", s.Round, s.Target, time.Unix(0, s.Began).UTC().Format("15:04:05.000000000"), s.Sandbox, s.Name, s.Source, end, s.Events)
	for _, c := range s.Containers {
		fmt.Fprintf(&w, "  container %.12s\n", c)
	}
	for _, x := range s.Spans {
		fmt.Fprintf(&w, "  %-6s %10s %10s  %s (%.6s) %s\n", x.Kind, ms(x.Began), ms(x.Ended), x.Name, x.Container, x.Source)
	}
	for _, g := range s.Gaps {
		fmt.Fprintf(&w, "  gap %9.3f at %10s %s: %.100q → %.100q, others %d, %s\n", float64(g.Ended-g.Began)/1e6, ms(g.Began), g.In, g.After, g.Before, g.Others, g.Source)
	}
	for _, g := range s.Guests {
		fmt.Fprintf(&w, "  guest %+.6f s, -%d ns, %d pairs\n", float64(g.Offset)/1e9, g.Uncertainty, g.Pairs)
	}
	for _, m := range s.Missing {
		fmt.Fprintf(&w, "  missing %s %d, %s\n", m.What, m.Count, m.Detail)
	}
	if x := s.Waiting; x != nil {
		fmt.Fprintf(&w, "  waiting in %s since %s, %s ms; stage %q, last %.100q, error %q, %s\n", x.In, ms(x.Since), ms(x.Until), x.Stage, x.Last, x.Error, x.Source)
	}
	if s.Failure != nil {
		fmt.Fprintf(&w, "  failure %s: %s\n", s.Failure.Kind, s.Failure.Detail)
	}
	return w.String()
}

// page formats all starts, and the events that belong to none.
func page(starts []record.Start, b *Builder) (text string) {
	for i := range starts {
		text += printed(&starts[i])
	}
	return text + fmt.Sprintf("%d lines of no start, %d starts dropped", b.Unplaced, b.Dropped)
}

// groups are the case files. The starts of each text were checked line by line. If a case
// has several files, each begins with a line "--- name".
var groups = []string{"forms", "ends", "calls", "gaps", "apart", "wrapped"}

func TestStartsOfTexts(t *testing.T) {
	for _, group := range groups {
		t.Run(group, func(t *testing.T) {
			golden.Cases(t, "testdata/cases/"+group+".txt", func(t *testing.T, text string) string {
				if !strings.HasPrefix(text, "--- ") {
					text = "--- log\n" + text
				}
				readers, order := map[string]io.Reader{}, []string{}
				for _, one := range strings.Split("\n"+text, "\n--- ")[1:] {
					name, lines, _ := strings.Cut(one, "\n")
					readers[name], order = strings.NewReader(lines), append(order, name)
				}
				return page(read(t, readers, order...))
			})
		})
	}
}

// TestRealLogs compares the starts in real logs with golden files that were checked line
// by line.
func TestRealLogs(t *testing.T) {
	for name, files := range map[string][]string{
		"kata-pod-of-the-runtime": {"cripod.kata.log"},
		"kata-pod-of-containerd":  {"cripod.containerd.log"},
		"kata-pod-of-both":        {"cripod.kata.log", "cripod.containerd.log"},
		"kata-one-of-the-runtime": {"one.kata.log"},
		"kata-one-of-containerd":  {"one.containerd.log"},
		"containerd-pods":         {"containerd-2.4-info.log"},
		"cri-o-pods":              {"cri-o-1.34-info.log"},
		"runsc-create":            {"runsc-create.txt"},
		"runsc-boot":              {"runsc-boot.txt"},
		"runsc-create-and-boot":   {"runsc-create.txt", "runsc-boot.txt"},
		"published-report":        {"published.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := make([]string, len(files))
			for i, f := range files {
				paths[i] = "../logs/testdata/" + f
			}
			starts, b := readFiles(t, paths...)
			golden.Same(t, "testdata/"+name+".txt", page(starts, b)+"\n")
		})
	}
}

func TestGuestClockIsKnownTo12ms(t *testing.T) {
	for _, names := range [][]string{{"one.kata.log"}, {"one.containerd.log"}, {"cripod.kata.log"}, {"cripod.containerd.log"}, {"one.kata.log", "one.containerd.log"}} {
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join("../logs/testdata", name))
		}
		starts, _ := readFiles(t, paths...)
		for _, s := range starts {
			for _, g := range s.Guests {
				if g.Uncertainty < 0 || g.Uncertainty > int64(12*time.Millisecond) {
					t.Errorf("%v: %+v", names, g)
				}
			}
		}
	}
}
