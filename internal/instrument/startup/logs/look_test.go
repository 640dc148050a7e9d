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

	"github.com/tare-bench/tare/internal/testing/golden"
)

func TestSegmentsBeginWhereTimeGoesBack(t *testing.T) {
	golden.Cases(t, "testdata/cases/pieces.txt", func(t *testing.T, text string) (lines string) {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			look, err := Look(r, 64)
			if end := following(t, look.Pieces, text); !look.Ordered || err != nil || end != int64(len(text)) {
				t.Errorf("%+v, %v", look, err)
			}
			before := ""
			for _, p := range look.Pieces {
				before += fmt.Sprintf(" %d", p.Line)
			}
			if lines != "" && lines != before {
				t.Errorf("byte by byte they begin after the lines%s", before)
			}
			lines = before
		}
		return "lines before each:" + lines
	})
	logfmt := func(first, second int) string {
		const line = "time=\"2026-11-21T02:45:%02d.5Z\" level=info msg=a\n"
		return fmt.Sprintf(line+line, first, second)
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

// following holds pieces of a text to each beginning where the one before it ends, and
// returns the end of the last.
func following(t *testing.T, pieces []Segment, text string) (end int64) {
	t.Helper()
	for _, p := range pieces {
		if p.From != end || p.Line != int64(strings.Count(text[:p.From], "\n")) || p.To == p.From && text != "" {
			t.Fatalf("%+v", pieces)
		}
		end = p.To
	}
	return end
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
		if end := following(t, pieces, string(text)); end != int64(len(text)) {
			t.Fatalf("%+v of %d bytes", pieces, len(text))
		}
	})
}
