package logs

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// peak reads a source and returns the maximum heap growth. It samples the heap every n
// events and at the end.
func peak(t *testing.T, sources ...Source) (grown int64, stats Stats) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := int64(m.HeapAlloc)
	look := func() {
		runtime.GC()
		runtime.ReadMemStats(&m)
		grown = max(grown, int64(m.HeapAlloc)-before)
	}
	n := 0
	stats, err := Read(context.Background(), sources, func(*Event) error {
		if n++; n%50_000 == 1 {
			look()
		}
		return nil
	})
	must.OK(t, err)
	look()
	checkSums(t, stats)
	return grown, stats
}

func TestMemoryDoesNotGrowWithTheInput(t *testing.T) {
	for _, name := range []string{"cripod.kata.log", "cripod.containerd.log", "runsc-boot.txt", "published.txt"} {
		text := []byte(testdata(t, name) + "\n")
		small, _ := peak(t, Source{Reader: repeat(text, 4<<20)})
		large, stats := peak(t, Source{Reader: repeat(text, 24<<20)})
		check.Equal(t, "bytes", stats.Bytes, 24<<20)
		// Allow 64 KiB: a collection may run before or after a buffer grows.
		if large > small+64<<10 || large > 1<<20 {
			t.Errorf("%s: the heap grew by %d bytes for 4 MiB and by %d for 24 MiB", name, small, large)
		}
	}
}

func TestLinesDoNotAllocate(t *testing.T) {
	for _, name := range []string{"cripod.kata.log", "cripod.containerd.log", "cri-o-1.34-info.log", "runsc-boot.txt", "published.txt"} {
		text := []byte(testdata(t, name) + "\n")
		allocations := func(size int64) float64 {
			return testing.AllocsPerRun(2, func() {
				_, err := Read(context.Background(), []Source{{Reader: repeat(text, size)}}, func(*Event) error { return nil })
				must.OK(t, err)
			})
		}
		// The extra 5 MiB have thousands of lines; the Go runtime also allocates
		// occasionally.
		if few, many := allocations(1<<20), allocations(6<<20); many > few+20 {
			t.Errorf("%s: %v allocations for 1 MiB, %v for 6 MiB", name, few, many)
		}
	}
}

// Invalid data, large enough to show up if the reader kept it.
func TestInvalidDataNeitherPanicsNorUsesMemory(t *testing.T) {
	const size = 10 << 20
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	tests := []struct {
		name  string
		of    string
		lines func(Stats) bool
	}{
		{"NULs", strings.Repeat("\x00", 4096), func(s Stats) bool { return s.Lines == 1 && s.Long == 1 && s.Unreadable == 1 }},
		{"binary", string(noise), func(s Stats) bool { return s.Lines > 35_000 && s.Events == 0 }},
		{"endless log line", `level=info msg="time=\"x\" `, func(s Stats) bool { return s.Lines == 1 && s.Long == 1 && s.Events == 0 }},
		{"endless record", `time="2026-11-21T02:45:27Z" level=info msg=a `, func(s Stats) bool { return s.Lines == 1 && s.Long == 1 && s.Events == maxLine/45 }},
		{"blank lines", "\n", func(s Stats) bool { return s.Lines == size && s.Empty == size }},
		{"blanks", "  \t", func(s Stats) bool { return s.Lines == 1 && s.Empty == 1 }},
		{"braces", "{", func(s Stats) bool { return s.Unreadable == 1 }},
		{"unterminated lists", `{"a":` + strings.Repeat("[", 50_000), func(s Stats) bool { return s.Unreadable == 1 }},
		{"quotes", `{"\"`, func(s Stats) bool { return s.Unreadable == 1 }},
		{"backslashes", `time="\\\`, func(s Stats) bool { return s.Unreadable == 1 }},
		{"prose", "Almost no operation in between, time= is money.\n", func(s Stats) bool { return s.Unreadable == s.Lines }},
		{"possible continuations of a runsc line", "I1121 02:27:17.292309 1 a] b\n" + strings.Repeat("rubbish\n", 20_000), func(s Stats) bool {
			return s.Unreadable > s.Lines/3
		}},
		{"journal entry with a repeated field", "__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\n" + strings.Repeat("MESSAGE=again and again\n", 40_000), func(s Stats) bool {
			return s.Events < 100 && s.Cut == s.Events && s.Unreadable > s.Lines/2
		}},
		{"journal entries with different fields", "__REALTIME_TIMESTAMP=1795229127500000\n" + strings.Repeat("A="+strings.Repeat("a", 60_000)+"\n", 60), func(s Stats) bool { return s.Events > 1 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			of := test.of
			if len(of) < 4096 {
				of = strings.Repeat(of, 4096)
			}
			grown, stats := peak(t, Source{Name: "rubbish", Reader: repeat([]byte(of), size)})
			if stats.Bytes != size || !test.lines(stats) {
				t.Errorf("%+v", stats)
			}
			if grown > 3<<20 {
				t.Errorf("the heap grew by %d bytes", grown)
			}
		})
	}
}

// A reader that rescans a line for each of its values takes thousands of times as long.
func TestParseTimeIsLinearInLineLength(t *testing.T) {
	lineOf := func(begin, of string) string { return (begin + strings.Repeat(of, maxLine/len(of)+1))[:maxLine] + "\n" }
	// Measure CPU time, because wall-clock time includes other processes.
	used := func() time.Duration {
		var at unix.Timespec
		must.OK(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at))
		return time.Duration(at.Nano())
	}
	fastest := func(line string) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 5 {
			began := used()
			if _, err := Read(t.Context(), []Source{{Reader: strings.NewReader(line)}}, func(*Event) error { return nil }); err != nil {
				t.Fatal(err)
			}
			least = min(least, used()-began)
		}
		return least
	}
	ordinary := fastest(lineOf(`time="2026-11-21T02:45:27Z" level=info msg=a `, `a="x" b=c `))
	for name, line := range map[string]string{
		"text with unterminated inner quotes":   lineOf(`time="2026-11-21T02:45:27Z" level=info msg=a `, `a="x"b `),
		"record with unterminated inner quotes": lineOf("", `time=2026-11-21T02:45:27Z a="x"b `),
		"quotes":                                lineOf(`time="2026-11-21T02:45:27Z" a="`, `"`),
		"backslashes":                           lineOf(`time="2026-11-21T02:45:27Z" a="`, `\`),
		"unterminated text in a wrapped line":   lineOf(`{"time":"2026-11-21T02:45:27Z","log":"time=2026-11-21T02:45:27Z `, `a=\"x\"b `),
		"objects":                               lineOf("", `{"_R":1}`),
		"prefixes":                              lineOf("", `a: `),
		"lists":                                 lineOf(`{"a":`, `[`),
	} {
		if took := fastest(line); took > 100*ordinary {
			t.Errorf("%s: %v, plain line %v", name, took, ordinary)
		}
	}
}

func TestJournalLengthIsNotTrusted(t *testing.T) {
	const size = 64 << 20
	text := "__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE\n\x00\x00\x00\x20\x00\x00\x00\x00"
	grown, stats := peak(t, Source{Reader: io.MultiReader(strings.NewReader(text), repeat(make([]byte, 4096), size))})
	if stats.Events != 1 || grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes: %+v", grown, stats)
	}
}

// repeated is a reader of n bytes that repeats the same data.
type repeated struct {
	of   []byte
	at   int
	left int64
}

func repeat(of []byte, n int64) *repeated { return &repeated{of: of, left: n} }

func (r *repeated) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(b) && r.left > 0 {
		some := copy(b[n:min(len(b), n+int(min(r.left, int64(len(b)))))], r.of[r.at:])
		r.at = (r.at + some) % len(r.of)
		r.left -= int64(some)
		n += some
	}
	return n, nil
}
