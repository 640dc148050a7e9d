package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// row is an event in a test; its strings are copies.
type row struct {
	Form               Form
	Time, Arrived      string // RFC 3339 in UTC; "" if missing
	Uptime, Took       time.Duration
	Level, Message     string
	Program, Source    string
	Subsystem          string
	Sandbox, Container string
	Request, Error     string
	Pid                int
	Line               int64
	Cut                bool
}

func stampText(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}

func rowOf(e *Event) row {
	return row{
		Form: e.Form, Time: stampText(e.Time), Arrived: stampText(e.Arrived),
		Uptime: time.Duration(e.Uptime), Took: time.Duration(e.Took),
		Level: string(e.Level), Message: string(e.Message),
		Program: string(e.Program), Source: string(e.Source), Subsystem: string(e.Subsystem),
		Sandbox: string(e.Sandbox), Container: string(e.Container),
		Request: string(e.Request), Error: string(e.Error),
		Pid: e.Pid, Line: e.Line, Cut: e.Cut,
	}
}

// String formats a row as one line without empty fields.
func (r row) String() string {
	var words []string
	for field, value := range reflect.ValueOf(r).Fields() {
		if !value.IsZero() {
			words = append(words, fmt.Sprintf("%s=%+q", field.Name, fmt.Sprint(value)))
		}
	}
	return strings.Join(words, " ")
}

func rowsText(all []row) (text string) {
	for _, r := range all {
		text += r.String() + "\n"
	}
	return text
}

// countsText formats the counters of a read.
func countsText(s Stats) string {
	return fmt.Sprintf("lines %d, read %d, cut %d, suppressed %d", s.Lines, s.Read, s.Cut, s.Suppressed)
}

// rows reads a text as one file.
func rows(t *testing.T, name, text string) ([]row, Stats) {
	t.Helper()
	return rowsOf(t, Source{Name: name, Reader: strings.NewReader(text)})
}

func rowsOf(t *testing.T, sources ...Source) ([]row, Stats) {
	t.Helper()
	var all []row
	stats, err := Read(context.Background(), sources, func(e *Event) error {
		all = append(all, rowOf(e))
		return nil
	})
	must.OK(t, err)
	checkSums(t, stats)
	return all, stats
}

func checkSums(t *testing.T, s Stats) {
	t.Helper()
	if s.Lines != s.Read+s.Empty+s.Unreadable {
		t.Errorf("%d lines, want the sum of %d read, %d empty and %d unreadable", s.Lines, s.Read, s.Empty, s.Unreadable)
	}
	sum := int64(0)
	for _, n := range s.Forms {
		sum += n
	}
	check.Equal(t, "events", sum, s.Events)
	check.Equal(t, fmt.Sprintf("%d unreadable lines, the first is %q", s.Unreadable, s.First), s.Unreadable > 0, s.First != "")
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/" + name))(t)
	return string(b)
}

func in2026(t *testing.T) {
	t.Helper()
	now = func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { now = time.Now })
}

func TestFixtures(t *testing.T) {
	in2026(t) // the lines of runsc have no year, and one file contains none at all
	tests := []struct {
		file  string
		lines int64
		empty int64
		bad   int64
		cut   int64
		back  int64
		forms map[string]int64
	}{
		{"one.kata.log", 246, 0, 0, 6, 2, map[string]int64{"kata": 132, "kata-agent": 101, "console": 10, "journal": 3}},
		{"cripod.kata.log", 486, 0, 0, 9, 3, map[string]int64{"kata": 244, "kata-agent": 229, "console": 10, "journal": 3}},
		{"one.containerd.log", 267, 0, 0, 0, 2, map[string]int64{"kata": 134, "kata-agent": 103, "console": 8, "containerd": 22}},
		{"cripod.containerd.log", 561, 0, 0, 0, 7, map[string]int64{"kata": 246, "kata-agent": 233, "console": 6, "containerd": 76}},
		{"containerd-2.4-info.log", 198, 0, 0, 0, 0, map[string]int64{"containerd": 198}},
		{"cri-o-1.34-info.log", 103, 0, 0, 0, 0, map[string]int64{"cri-o": 103}},
		{"runsc-boot.txt", 1943, 2, 0, 0, 1, map[string]int64{"runsc": 882}},
		{"runsc-create.txt", 246, 0, 0, 0, 0, map[string]int64{"runsc": 246}},
		{"published.txt", 152, 61, 63, 0, 3, map[string]int64{"kata": 8, "kata-proxy": 22, "kata-agent": 9}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			text := testdata(t, test.file)
			_, s := rows(t, test.file, text)
			if s.Bytes != int64(len(text)) || s.Lines != test.lines || s.Empty != test.empty || s.Unreadable != test.bad ||
				s.Cut != test.cut || s.Backward != test.back || s.Long != 0 || s.Suppressed != 0 {
				t.Errorf("%+v", s)
			}
			check.Equal(t, "Forms", s.Forms, test.forms)
		})
	}
}

// The shim writes to syslog and to containerd. Both must yield the same events, except
// where syslog truncated lines.
func TestBothLogsYieldTheSameEvents(t *testing.T) {
	for _, run := range []string{"one", "cripod"} {
		fromSyslog, _ := rows(t, "", testdata(t, run+".kata.log"))
		fromContainerd, _ := rows(t, "", testdata(t, run+".containerd.log"))
		seen := map[row]int{}
		for _, e := range fromContainerd {
			e.Line = 0
			seen[e]++
		}
		missing := 0
		for _, e := range fromSyslog {
			if e.Cut || e.Form == Journal {
				continue
			}
			e.Line = 0
			// Lines without name= and pid= get them from the syslog prefix.
			if e.Program == "kata" {
				e.Program, e.Pid = "", 0
			} else if seen[e] == 0 {
				e.Pid = 0
			}
			if seen[e] == 0 {
				missing++
				t.Errorf("%s: only in syslog: %+v", run, e)
			}
			seen[e]--
		}
	}
}

func TestEventsOfRealLogs(t *testing.T) {
	in2026(t)
	golden.Cases(t, "testdata/cases/events.txt", func(t *testing.T, input string) string {
		words := strings.SplitN(input, " ", 3)
		all, _ := rows(t, "", testdata(t, words[0]))
		for _, r := range all {
			if r.Form.String() == words[1] && strings.HasPrefix(r.Message, words[2]) {
				return r.String()
			}
		}
		return "no such event"
	})
}

func TestSourcesAreMergedByTime(t *testing.T) {
	var times []int64
	var files [3]int
	sources := []Source{
		{Name: "kata", Reader: strings.NewReader(testdata(t, "one.kata.log"))},
		{Name: "containerd", Reader: iotest.OneByteReader(strings.NewReader(testdata(t, "one.containerd.log")))},
		{Name: "empty", Reader: strings.NewReader("")},
	}
	stats, err := Read(context.Background(), sources, func(e *Event) error {
		files[e.File]++
		times = append(times, max(e.Arrived, e.Time*b2i(e.Arrived == 0)))
		return nil
	})
	must.OK(t, err)
	checkSums(t, stats)
	back := int64(0)
	for i := 1; i < len(times); i++ {
		if times[i] < times[i-1] {
			back++
		}
	}
	if files != [3]int{246, 267, 0} || back > stats.Backward {
		t.Errorf("%v events, %d steps back, want the %d of the lines", files, back, stats.Backward)
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestLineWithoutTimeFollowsItsPredecessor(t *testing.T) {
	text := func(second, name string) string {
		return `time="2026-11-21T02:45:0` + second + `Z" level=info msg=` + name + "\n"
	}
	first := text("1", "a") + "what is this\n" + text("4", "d")
	other := text("2", "b") + text("3", "c") + text("4", "e")
	var order []byte
	_, err := Read(context.Background(), []Source{
		{Reader: strings.NewReader(first)}, {Reader: strings.NewReader(other)},
	}, func(e *Event) error {
		order = append(order, e.Message...)
		return nil
	})
	if err != nil || string(order) != "abcde" {
		t.Errorf("%s, %v", order, err)
	}
}

func TestReadReturnsTheReceiversError(t *testing.T) {
	full := errors.New("the disk is full")
	text := testdata(t, "one.kata.log")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	endless := Source{Name: "zeros", Reader: zeros{}}
	short, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	tests := []struct {
		name    string
		ctx     context.Context
		sources []Source
		each    func(*Event) error
		want    error
	}{
		{"error of the receiver", context.Background(), []Source{{Reader: strings.NewReader(text)}}, func(*Event) error { return full }, full},
		{"context canceled before the first line", canceled, []Source{{Reader: strings.NewReader(text)}}, nil, context.Canceled},
		{"context timeout before the first complete line", short, []Source{endless}, nil, context.DeadlineExceeded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			each := test.each
			if each == nil {
				each = func(*Event) error { return nil }
			}
			if _, err := Read(test.ctx, test.sources, each); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

// An error in one source is reported and does not affect the others.
func TestUnreadableSourceDoesNotStopOthers(t *testing.T) {
	full := errors.New("the disk is full")
	text := testdata(t, "one.kata.log")
	for name, test := range map[string]struct {
		broken io.Reader
		events int
		want   error
	}{
		"read error in the middle":         {io.MultiReader(strings.NewReader(text), iotest.ErrReader(full)), 246, full},
		"read error at the beginning":      {iotest.ErrReader(full), 0, full},
		"reader without progress":          {nothing{}, 0, io.ErrNoProgress},
		"truncated":                        {io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)), 246, io.ErrUnexpectedEOF},
		"UTF-16":                           {strings.NewReader("\xff\xfet\x00i\x00m\x00e\x00=\x00"), 0, errUTF16},
		"big-endian UTF-16":                {strings.NewReader("\xfe\xff\x00t\x00i\x00m\x00e"), 0, errUTF16},
		"UTF-16 without a byte order mark": {iotest.OneByteReader(strings.NewReader("t\x00i\x00m\x00e\x00=\x00\"\x002\x000\x002\x006\x00")), 0, errUTF16},
	} {
		t.Run(name, func(t *testing.T) {
			var events [2]int
			stats, err := Read(t.Context(), []Source{{Name: "bad.log", Reader: test.broken}, {Name: "b.log", Reader: strings.NewReader(text)}}, func(e *Event) error {
				events[e.File]++
				return nil
			})
			if err != nil || events != [2]int{test.events, 246} || len(stats.Broken) != 1 {
				t.Fatalf("%v events, %+v, %v", events, stats.Broken, err)
			}
			if b := stats.Broken[0]; b.File != 0 || !errors.Is(b.Err, test.want) || !strings.Contains(b.Err.Error(), "bad.log") || test.events > 0 != (b.Lines > 0) {
				t.Errorf("%+v", b)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func TestBlocksSplitLinesAnywhere(t *testing.T) {
	text := testdata(t, "cripod.kata.log")
	want, wantStats := rows(t, "", text)
	for _, size := range []int{1, 7, 333, 4096, 100_000} {
		var got []row
		stats, err := Read(context.Background(), []Source{{Reader: &chunks{[]byte(text), size}}}, func(e *Event) error {
			got = append(got, rowOf(e))
			return nil
		})
		if err != nil || stats.Bytes != wantStats.Bytes || stats.Lines != wantStats.Lines || len(got) != len(want) {
			t.Fatalf("in pieces of %d: %+v, %v", size, stats, err)
		}
		for i := range got {
			// Plain lines take the time zone from the first block only.
			if got[i] != want[i] && got[i].Form != Journal {
				t.Fatalf("in pieces of %d: %+v\nwant %+v", size, got[i], want[i])
			}
		}
	}
}

type chunks struct {
	left []byte
	size int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.left[:min(c.size, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}

func TestLongLinesAreTruncated(t *testing.T) {
	const line = `time="2026-11-21T02:45:01Z" level=info msg="starting cri plugin" config="`
	for _, size := range []int{maxLine - 1, maxLine, maxLine + 1, block - 1, block, block + 1, 3*block + 5} {
		text := line + strings.Repeat("x", size-len(line)-1) + "\"\n" + strings.Replace(line, "starting", "next", 1) + "\"\n"
		all, s := rows(t, "", text)
		long := size > maxLine
		if len(all) != 2 || all[0].Cut != long || s.Long != b2i(long) || s.Cut != b2i(long) || s.Bytes != int64(len(text)) ||
			all[0].Message != "starting cri plugin" || all[1].Message != "next cri plugin" {
			t.Errorf("%d bytes: %+v %+v", size, all, s)
		}
	}
}

func TestMessagesAreTruncatedTo4KiB(t *testing.T) {
	for _, filling := range []string{"x", `\n`, `\"`, `é`} {
		text := `time="2026-11-21T02:45:01Z" level=info msg="` + strings.Repeat(filling, 5000) + `"`
		all, _ := rows(t, "", text)
		if len(all) != 1 || len(all[0].Message) > maxMessage+4 || len(all[0].Message) < maxMessage || all[0].Cut {
			t.Errorf("%q: %d bytes", filling, len(all[0].Message))
		}
	}
}
