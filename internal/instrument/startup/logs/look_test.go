package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSegmentsBeginWhereTimeGoesBack(t *testing.T) {
	logfmt := func(seconds ...int) string {
		var b strings.Builder
		for _, s := range seconds {
			fmt.Fprintf(&b, "time=\"2026-11-21T02:45:%02d.5Z\" level=info msg=a\n", s)
		}
		return b.String()
	}
	entry := func(us int) string {
		return fmt.Sprintf("__CURSOR=1\n__REALTIME_TIMESTAMP=%d\nMESSAGE=a\n\n", us)
	}
	tests := []struct {
		name  string
		text  string
		lines []int64 // before each
	}{
		{"nothing", "", []int64{0}},
		{"one log", logfmt(1, 2, 3), []int64{0}},
		{"two logs", logfmt(1, 2, 3) + logfmt(1, 2, 3), []int64{0, 3}},
		{"a second is jitter", logfmt(1, 2, 1, 2, 1), []int64{0}},
		{"jitter does not add up", logfmt(3, 2, 1), []int64{0, 2}},
		{"lines without a time belong to those before them", logfmt(5) + "a\nb\n\n" + logfmt(1) + "c\n", []int64{0, 4}},
		{"glog's", "I1121 02:27:17.292309 1 a] b\nI1121 02:27:10.292309 1 a] b\n", []int64{0, 1}},
		{"a new year", "I1231 02:27:17.292309 1 a] b\nI0101 02:27:10.292309 1 a] b\n", []int64{0}},
		{"syslog's", "Nov 21 02:46:31 host a: b\nNov 21 02:46:21 host a: b\n<30>Nov 21 02:46:01 host a: b\n", []int64{0, 1, 2}},
		{"RFC 5424's", "<30>1 2026-11-21T02:46:31Z host a 1 - - b\n<30>1 2026-11-21T02:46:21Z host a 1 - - b\n", []int64{0, 1}},
		{"forms beside each other", "I1121 02:27:17.292309 1 a] b\n" + logfmt(1) + "I1121 02:27:18.292309 1 a] b\n", []int64{0}},
		{"a record behind a syslog's prefix", "Nov 21 02:45:31 host kata[7]: " + logfmt(31) + logfmt(1), []int64{0, 1}},
		{"JSON", `{"level":"info","msg":"a","time":"2026-11-21T02:46:31Z"}` + "\n" + `{"msg":"a","ts" : "2026-11-21T02:46:21Z"}` + "\n", []int64{0, 1}},
		{"the journal's JSON", `{"MESSAGE":"a","__REALTIME_TIMESTAMP":"1795229127500000"}` + "\n" + `{"__REALTIME_TIMESTAMP" : "1795229117500000"}` + "\n", []int64{0, 1}},
		{"an entry's cursor is of the entry", entry(1795229127500000) + entry(1795229117500000), []int64{0, 4}},
		{"an entry that lacks one", entry(1795229127500000) + "__REALTIME_TIMESTAMP=1795229117500000\n\n", []int64{0, 4}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.text), iotest.OneByteReader(strings.NewReader(test.text))} {
				look, err := Look(r, 64)
				pieces, ok := look.Pieces, look.Ordered
				var before []int64
				end := int64(0)
				for _, p := range pieces {
					before = append(before, p.Line)
					if p.From != end || p.Line != int64(strings.Count(test.text[:p.From], "\n")) || p.To == p.From && test.text != "" {
						t.Errorf("%+v", pieces)
					}
					end = p.To
				}
				if !slices.Equal(before, test.lines) || !ok || err != nil || end != int64(len(test.text)) {
					t.Errorf("%+v, %v, %v", pieces, ok, err)
				}
			}
		})
	}
	if l, err := Look(strings.NewReader(strings.Repeat(logfmt(9, 1), 64)), 64); len(l.Pieces) != 1 || l.Ordered || err != nil {
		t.Errorf("disorder: %+v, %v", l, err)
	}
	if l, err := Look(strings.NewReader(strings.Repeat(logfmt(1, 9), 64)), 64); len(l.Pieces) != 64 || !l.Ordered || err != nil {
		t.Errorf("64 logs: %+v, %v", l, err)
	}
	full := errors.New("the disk is full")
	if _, err := Look(iotest.ErrReader(full), 64); !errors.Is(err, full) {
		t.Error(err)
	}
}

// Pieces of one file say the same as the files that it was made of.
func TestSegmentsReadLikeFiles(t *testing.T) {
	names := []string{"cripod.kata.log", "cripod.containerd.log"}
	var texts []string
	var apart []Source
	all := ""
	for _, name := range names {
		text := testdata(t, name) + "\n"
		texts = append(texts, text)
		all += text
		apart = append(apart, Source{Name: "all.log", Reader: strings.NewReader(text)})
	}
	look, err := Look(strings.NewReader(all), 64)
	if err != nil || !look.Ordered || len(look.Pieces) != len(texts) {
		t.Fatalf("%+v, %v", look, err)
	}
	var together []Source
	for _, p := range look.Pieces {
		together = append(together, Source{Name: "all.log", Reader: io.NewSectionReader(strings.NewReader(all), p.From, p.To-p.From), Line: p.Line})
	}
	read := func(sources []Source) (all []row) {
		if _, err := Read(t.Context(), sources, func(e *Event) error {
			r := rowOf(e)
			r.Line -= sources[e.File].Line
			all = append(all, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if want, got := read(apart), read(together); !slices.Equal(got, want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}

func FuzzLook(f *testing.F) {
	f.Add([]byte("I1121 02:27:17.292309 1 a] b\nI1121 02:27:10.292309 1 a] b\n"), 3)
	f.Add([]byte("__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\n\n__CURSOR=1\n__REALTIME_TIMESTAMP=1\n"), 3)
	f.Add([]byte(`{"time":`), 1)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		look, err := Look(bytes.NewReader(text), most)
		pieces, ok := look.Pieces, look.Ordered
		if err != nil || len(pieces) == 0 || ok && len(pieces) > max(most, 1) {
			t.Fatalf("%d of at most %d, %v, %v", len(pieces), most, ok, err)
		}
		end := int64(0)
		for _, p := range pieces {
			if p.From != end || p.Line != int64(bytes.Count(text[:p.From], []byte("\n"))) {
				t.Fatalf("%+v", pieces)
			}
			end = p.To
		}
		if end != int64(len(text)) {
			t.Fatalf("%+v of %d bytes", pieces, len(text))
		}
	})
}
