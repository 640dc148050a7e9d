package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// numbered returns n object members with the same value.
func numbered(n int, value string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"%d":%s`, i, value)
	}
	return strings.Join(names, ",")
}

// hostileLines returns lines with long lists that need few bytes but much memory.
func hostileLines(size int) map[string]string {
	fill := func(begin, element, end string) string {
		return begin + strings.Repeat(element+",", max(0, size-len(begin+element+end))/(len(element)+1)) + element + end
	}
	return map[string]string{
		"empty samples":     fill(`{"type":"batch","samples":[`, `{}`, `]}`),
		"empty groups":      fill(`{"type":"reading","groups":[`, `{}`, `]}`),
		"empty memory":      fill(`{"type":"reading","groups":[`, `{"memory":{}}`, `]}`),
		"empty processes":   fill(`{"type":"reading","processes":[`, `{}`, `]}`),
		"empty memberships": fill(`{"type":"reading","processes":[{"pid":1,"groups":[`, `{}`, `]}]}`),
		"small memberships": fill(`{"type":"reading","processes":[{"pid":1,"groups":[`, `{"paths":{"":""}}`, `]}]}`),
		"one set each":      fill(`{"type":"reading","processes":[`, `{"groups":[{"paths":{"":""}}]}`, `]}`),
		"empty statistics":  fill(`{"type":"reading","engine":[`, `{}`, `]}`),
		"empty examples":    fill(`{"type":"reading","problems":{"examples":[`, `""`, `]}}`),
		"names left":        fill(`{"type":"reading","left":[`, `""`, `]}`),
		"short ticks":       fill(`{"type":"series","times":[`, `1`, `]}`),
		"short values":      fill(`{"type":"series","values":{"a":[`, `1`, `]}}`),
		"empty series":      fill(`{"type":"series","values":{`, `"a":[]`, `}}`),
		"empty roles":       fill(`{"type":"cell","seen":{"cpu":[`, `{}`, `]}}`),
		"empty mounts":      fill(`{"type":"place","mounts":[`, `{}`, `]}`),
		"empty gaps":        fill(`{"type":"start","gaps":[`, `{}`, `]}`),
		"empty maps":        fill(`{"type":"program","id":1,"kind":"a","maps":[`, `{}`, `]}`),
		"empty runs":        fill(`{"type":"point","runs":[`, `{}`, `]}`),
		"empty words":       fill(`{"type":"header","schema":1,"command":[`, `""`, `]}`),
		"many brackets":     fill(`{"type":"end","x":[`, `[`, ``),
	}
}

// The size of a hostile line's value is checked before it is allocated.
func TestHostileLinesUseLittleMemory(t *testing.T) {
	const size = 3 << 20 // the longest list that fits into a line has a million elements
	for name, line := range hostileLines(size) {
		text := []byte(line)
		kind := must.Get(lineType(text))(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := standard().byWord[kind].decode(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
		runtime.ReadMemStats(&after)
		// All allocations, including garbage.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2*size {
			t.Errorf("%s: allocated %d KiB for %d KiB of text", name, grown>>10, size>>10)
		}
	}
}

// A list of the maximum length may use the memory of that many elements.
func TestLongestListsAreBounded(t *testing.T) {
	const most = 96 << 20
	for name, line := range map[string]string{
		"groups":      `{"type":"reading","groups":` + list(1<<16, `{"memory":{}}`) + `}`,
		"processes":   `{"type":"reading","processes":` + list(1<<16, `{}`) + `}`,
		"memberships": `{"type":"reading","processes":[{"pid":1,"groups":` + list(1<<17, `{"paths":{"":""}}`) + `}]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = standard().byWord[TypeReading].decode([]byte(line)) // whether it is accepted is not tested here
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > most {
			t.Errorf("%s: %d MiB", name, grown>>20)
		}
	}
}

// For any file, reading terminates, and every returned line is valid by itself.
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
	encoder := must.Get(newEncoder(&b))(f)
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
		t.Fatalf("neither a line nor a problem: %v", err)
	}
	if lines > 0 && !errors.Is(err, io.EOF) {
		t.Fatalf("fatal problem: %v", err)
	}
}

func checkLine(t *testing.T, i int, line any) {
	if _, isHeader := line.(*Header); isHeader != (i == 0) {
		t.Fatalf("line %d is a %T", i, line)
	}
	must.OK(t, Validate(line))
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
				t.Fatalf("line %d: latency %v", i, d)
			}
		}
	}
}
