package logs

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

func FuzzRead(f *testing.F) {
	for _, name := range []string{"one.kata.log", "one.containerd.log", "cri-o-1.34-info.log", "runsc-boot.txt", "published.txt"} {
		lines := strings.SplitAfter(testdata(f, name), "\n")
		for i := 0; i+3 < len(lines); i += len(lines)/20 + 1 {
			f.Add([]byte(strings.Join(lines[i:i+3], "")), false)
		}
	}
	f.Add([]byte(`{"MESSAGE":[104,101],"__REALTIME_TIMESTAMP":"1795229127500000"}`), false)
	f.Add([]byte("__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\n"+binaryField("MESSAGE", "a\nb")+"\n"), true)
	f.Add([]byte(`<27>1 2026-11-21T02:45:27Z host kata 7 - [a b="c"] hello`), false)
	f.Add([]byte("Sat 2026-11-21 02:46:31 UTC host kata[7]: hello"), false)
	f.Add([]byte("[   12.345678] host kata[7]: hello"), false)
	f.Add([]byte("\x1b[36mINFO\x1b[0m[0001] a text   key=value\nDEBU[2026-11-21T02:45:27.5Z] b=c id=d\nlog:12:INFO[0002] e\n"), false)
	f.Add([]byte("{\n\t\"__REALTIME_TIMESTAMP\" : \"1795229127500000\",\n\t\"MESSAGE\" : \"a\"\n}\nSat 2026-11-21 02:45:27.500000 UTC [s=1;t=660c05a6f60e0;x=5]\n    MESSAGE=hello\n"), false)
	f.Add([]byte(`{"log":"time=\"2026-11-21T02:45:27Z\" level=info msg=\"a \"b\" c\"\n","time":"2026-11-21T02:45:27Z"}`), false)
	f.Fuzz(func(t *testing.T, text []byte, journal bool) {
		read := func(sources ...Source) (Stats, []string) {
			var messages []string
			events := int64(0)
			stats, err := Read(context.Background(), sources, func(e *Event) error {
				events++
				if e.Line < 1 || e.Line > int64(len(text))+1 || e.Form == Unknown || e.Time < 0 || (e.Time == 0) != (e.Form == Console) || e.Guest != (e.Form == KataAgent || e.Form == Console) {
					t.Fatalf("%+v", e)
				}
				if len(e.Message) > maxMessage+utf8.UTFMax {
					t.Fatalf("message of %d bytes", len(e.Message))
				}
				messages = append(messages, string(e.Message))
				return nil
			})
			must.OK(t, err)
			if stats.Events != events {
				t.Fatalf("%d events counted, %d delivered", stats.Events, events)
			}
			checkSums(t, stats)
			return stats, messages
		}
		if isUTF16(text) {
			return // the input is rejected
		}
		one, all := read(Source{Reader: bytes.NewReader(text), Journal: journal})
		if one.Bytes != int64(len(text)) {
			t.Fatalf("%d bytes of %d", one.Bytes, len(text))
		}
		halves, same := read(Source{Reader: iotest.HalfReader(bytes.NewReader(text)), Journal: journal})
		if halves.Lines != one.Lines || halves.Bytes != one.Bytes {
			t.Fatalf("%+v\n%+v", one, halves)
		}
		// The year comes from the first block, and only some years have a leap day.
		if halves.Events != one.Events && !leap.Match(text) || halves.Events == one.Events && !slices.Equal(all, same) {
			t.Fatalf("%q\n%q", all, same)
		}
		two, _ := read(Source{Reader: bytes.NewReader(text), Journal: journal}, Source{Reader: bytes.NewReader(text), Journal: journal})
		if two.Events != 2*one.Events || two.Lines != 2*one.Lines || two.Cut != 2*one.Cut {
			t.Fatalf("%+v\n%+v", one, two)
		}
	})
}

var leap = regexp.MustCompile(`Feb 29|0229|02-29`)

func TestTimesAreRFC3339Within262Years(t *testing.T) {
	golden.Lines(t, "testdata/cases/times.txt", func(_ *testing.T, text string) (any, error) {
		ns, _, ok := parseStamp([]byte(text))
		if !ok {
			return "no time", nil
		}
		return stampText(ns), nil
	})
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`a\"b\\c\n`, `\u00e9\U0001f600\x41\101`, `\`, `\x4`, `\ud83d\ude00`, `\ud83d\u0041`, `é\a\b\f\r\t\v`, `\'\/\q`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var arena []byte
		f := fields{arena: &arena}
		got, end, _ := f.quoted([]byte(s + `"`))
		if len(got) > len(s)+1 || end > len(s) {
			t.Fatalf("%q became %q, which ends at %d", s, got, end)
		}
		want, err := strconv.Unquote(`"` + s + `"`)
		// Go replaces invalid UTF-8; the reader keeps it unchanged.
		if err == nil && utf8.ValidString(s) && (string(got) != want || end != len(s)) {
			t.Fatalf("%q: got %q, Go has %q", s, got, want)
		}
	})
}

// Each log format, from its real writers and with hostile content. If a case has several
// files, each begins with a line "--- name".
func TestEveryLogFormatIsParsed(t *testing.T) {
	in2026(t)
	for _, file := range []string{"forms", "runsc", "journal", "dates"} {
		t.Run(file, func(t *testing.T) {
			golden.Cases(t, "testdata/cases/"+file+".txt", func(t *testing.T, text string) string {
				if !strings.HasPrefix(text, "--- ") {
					text = "--- \n" + text
				}
				var sources []Source
				for _, one := range strings.Split("\n"+text, "\n--- ")[1:] {
					name, lines, _ := strings.Cut(one, "\n")
					sources = append(sources, Source{Name: name, Reader: strings.NewReader(lines)})
				}
				all, s := rowsOf(t, sources...)
				return rowsText(all) + countsText(s)
			})
		})
	}
}

func TestLateZoneIsNotAClockJump(t *testing.T) {
	in2026(t)
	all, _ := rows(t, "", "I0524 10:00:00.500000 1 a.go:1] a\n"+strings.Repeat("x\n", block)+"I0524 10:00:01.500000 1 a.go:1] a\n"+
		"time=\"2026-05-24T10:00:02+01:00\" level=info msg=a\nI0524 10:00:03.500000 1 a.go:1] a\n")
	var times []string
	for _, r := range all {
		times = append(times, r.Time)
	}
	want := []string{"2026-05-24T10:00:00.5Z", "2026-05-24T10:00:01.5Z", "2026-05-24T09:00:02Z", "2026-05-24T10:00:03.5Z"}
	check.Equal(t, "times", times, want)
}

// binaryField encodes a field as `journalctl -o export` encodes unprintable values.
func binaryField(key, value string) string {
	return key + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

func TestDroppedMessageCountsAreSummed(t *testing.T) {
	s := source{stats: &Stats{}}
	s.stats.Suppressed = math.MaxInt64 - 1
	s.plain([]byte("Suppressed 3 messages from kata.service"), &carrier{}, nil, false)
	check.Equal(t, "Suppressed", s.stats.Suppressed, math.MaxInt64)
}

func TestExplicitJournalNeedsNoCursor(t *testing.T) {
	text := "_PID=7\n_SOURCE_REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=hello\n\n"
	for _, told := range []bool{false, true} {
		n := 0
		_, err := Read(context.Background(), []Source{{Reader: strings.NewReader(text), Journal: told}}, func(*Event) error {
			n++
			return nil
		})
		if err != nil || n != int(b2i(told)) {
			t.Errorf("explicit %v: %d events, %v", told, n, err)
		}
	}
}
