package bpflist

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

var update = flag.Bool("update", false, "write the golden files anew")

// made is a listing of a node of eight CPUs, two seconds after another: a mesh's
// program that used 12.99 % of a core, one that nobody knows and whose memory is not
// known, and one with a name that a terminal would act on.
func made() (l, before *bpfstat.Listing) {
	shared := record.ProgramMap{ID: 12, Kind: "hash", Name: "km_service", Entries: 65536, Memory: 5767168, Shared: 2}
	outer := record.ProgramMap{ID: 14, Kind: "hash_of_maps", Name: "km_outer", Entries: 16, Memory: 2048, Shared: 1, Inner: 3, InnerMemory: 12288}
	ring := record.ProgramMap{ID: 15, Kind: "ringbuf", Name: "events", Entries: 65536, Memory: -1, Shared: 1}
	l = &bpfstat.Listing{
		At: 12e9,
		Programs: []record.Program{
			{
				Type: record.TypeProgram, ID: 41, Kind: "cgroup_sock_addr", Name: "cgroup_connect4", Full: "cgroup_connect4_prog", Tag: "a3f1c2d4e5b60718",
				Owner: "kmesh", Attached: []string{"cgroup connect4 /mnt/kmesh_cgroup2"}, Holders: []string{"812 kmesh-daemon", "900 other"},
				Pins: []string{"/sys/fs/bpf/bpf_kmesh/a", "/sys/fs/bpf/bpf_kmesh/b"}, Memory: 8192, Maps: []record.ProgramMap{shared, outer},
			},
			{
				Type: record.TypeProgram, ID: 42, Kind: "xdp", Tag: "0011223344556677", Attached: []string{}, Memory: -1,
				Maps: []record.ProgramMap{shared, ring},
			},
			{
				Type: record.TypeProgram, ID: 50, Kind: "sock_ops", Name: "=\x1b[2J\u202e\"\\", Tag: "8899aabbccddeeff",
				Attached: []string{"cgroup sock_ops /a", "cgroup sock_ops /b", "cgroup sock_ops /c"}, Holders: []string{"7 evil\nname"}, Memory: 4096, Maps: []record.ProgramMap{},
			},
		},
		Counters: []bpfstat.Counters{
			{ID: 41, Count: 1_500_000, Time: 3_259_800_000, Misses: 3}, {ID: 42, Count: 12, Time: 99}, {ID: 50, Count: 10, Time: 1000},
		},
		Maps: []record.ProgramMap{shared, outer, ring},
		Loose: []record.Map{{Type: record.TypeMap, Owner: "kmesh", Holders: []string{"812 kmesh-daemon"}, Pins: []string{"/sys/fs/bpf/bpf_kmesh/m"},
			Map: record.ProgramMap{ID: 16, Kind: "array_of_maps", Name: "kmesh_map1600", Entries: 100, Memory: 4096, Inner: 2, InnerMemory: 65536}}},
		Passed:   2,
		Gone:     1,
		Problems: []string{"only 3 of 9 processes were asked which programs they hold"},
	}
	went := record.Program{Type: record.TypeProgram, ID: 43, Kind: "tracepoint", Name: "short_lived", Tag: "0102030405060708", Attached: []string{}, Memory: 4096, Maps: []record.ProgramMap{}}
	l.Went = []bpfstat.Counters{{ID: 43, Count: 300, Time: 41_000}}
	return l, &bpfstat.Listing{
		At: 10e9, Programs: []record.Program{l.Programs[0], l.Programs[1], went},
		Counters: []bpfstat.Counters{{ID: 41, Count: 500_000, Time: 3_000_000_000, Misses: 1}, {ID: 42, Count: 12, Time: 99}, {ID: 43, Count: 100, Time: 1000}},
	}
}

func view(t *testing.T) *View {
	t.Helper()
	l, before := made()
	v := newView(l, before, 8)
	v.Time, v.Counted, v.Before = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), true, true
	return v
}

func TestRenderings(t *testing.T) {
	v := view(t)
	l, _ := made()
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
			file := filepath.Join("testdata", name)
			if *update {
				must.OK(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			must.OK(t, err)
			if b.String() != string(want) {
				t.Errorf("it is\n%s\nwant\n%s", b.String(), want)
			}
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
