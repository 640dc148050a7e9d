package record

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Whatever is in a file, reading it ends, and what comes out of it is true as
// far as a line can tell.
func FuzzReader(f *testing.F) {
	text, _ := written(f, few())
	f.Add([]byte(text))
	f.Add([]byte(text[:len(text)-20]))
	f.Add([]byte(headerLine + batchPrefix + `[{"start":1500,"first":1400},{"lane":1}]}` + "\n"))
	f.Add([]byte("oops\n{}\n" + headerLine))
	for _, line := range examples(f) {
		f.Add([]byte(headerLine + line + "\n"))
	}
	for _, line := range hostileLines(2000) {
		f.Add([]byte(headerLine + line + "\n"))
	}
	var b bytes.Buffer
	encoder, err := newEncoder(&b)
	must.OK(f, err)
	if _, err := encoder.Write([]byte(text)); err != nil {
		f.Fatal(err)
	}
	must.OK(f, encoder.Close())
	f.Add(b.Bytes())

	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		defer func() { _ = r.Close() }()
		for i := 0; ; i++ {
			line, err := r.Next()
			if err != nil {
				checkEnd(t, i, err)
				return
			}
			checkLine(t, i, line)
		}
	})
}

func checkEnd(t *testing.T, lines int, err error) {
	if lines == 0 && !errors.Is(err, ErrNotRecord) && !errors.Is(err, ErrNewerSchema) {
		t.Fatalf("no line and no reason: %v", err)
	}
	if lines > 0 && !errors.Is(err, io.EOF) {
		t.Fatalf("a problem was fatal: %v", err)
	}
}

func checkLine(t *testing.T, i int, line any) {
	if _, isHeader := line.(*Header); isHeader != (i == 0) {
		t.Fatalf("line %d is a %T", i, line)
	}
	if err := Validate(line); err != nil {
		t.Fatalf("line %d was let through: %v", i, err)
	}
	if series, ok := line.(*Series); ok {
		for name, values := range series.Values {
			if len(values) != len(series.Times) {
				t.Fatalf("line %d: %d values of %s at %d times", i, len(values), name, len(series.Times))
			}
		}
	}
	if cell, ok := line.(*Cell); ok && cell.Failure == nil && cell.Reported == nil {
		t.Fatalf("line %d: neither figures nor a failure", i)
	}
	batch, ok := line.(*Batch)
	if !ok {
		return
	}
	for _, sample := range batch.Samples {
		for _, stamp := range Stamps {
			if d, ok := sample.Latency(stamp); ok && (d < 0 || d > longestSpan) {
				t.Fatalf("line %d: a latency of %v", i, d)
			}
		}
	}
}
