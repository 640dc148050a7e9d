package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestBadLinesAreSkipped(t *testing.T) {
	batch := batchPrefix + `[{"start":1001,"returned":1002}]}` + "\n"
	for name, test := range map[string]struct {
		text      string
		batches   int
		problems  []string // a part of each expected problem
		truncated bool
	}{
		"a whole record has no problem":          {headerLine + batch + batch, 2, nil, false},
		"blank lines are ignored":                {headerLine + "\n \r\n" + batch, 1, nil, false},
		"type field not first":                   {headerLine + strings.Replace(batch, `{"type":"batch",`, `{"x":1,"type":"batch",`, 1), 1, nil, false},
		"unknown type is skipped":                {headerLine + `{"type":"span","x":1}` + "\n" + batch, 1, nil, false},
		"unknown field is skipped":               {headerLine + strings.Replace(batch, `"lanes"`, `"x":{},"lanes"`, 1), 1, nil, false},
		"text that is not JSON":                  {headerLine + "oops\n" + batch, 1, []string{"line 2: not a JSON object"}, false},
		"truncated line followed by another":     {headerLine + batch[:50] + "\n" + batch, 1, []string{"line 2: unexpected end"}, false},
		"an unknown type that is not JSON":       {headerLine + `{"type":"span"` + "\n" + batch, 1, []string{"line 2: not JSON"}, false},
		"an object without a type":               {headerLine + "{}\n" + batch, 1, []string{"line 2: a JSON object without a type"}, false},
		"line with two types":                    {headerLine + `{"type":"node","type":"end","status":"done"}` + "\n", 0, []string{`duplicate field "type"`}, false},
		"duplicate stamp":                        {headerLine + batchPrefix + `[{"start":1001,"returned":1002,"returned":9002}]}` + "\n" + batch, 1, []string{`line 2: duplicate field "returned" in one object`}, false},
		"duplicate stamp, escaped":               {headerLine + batchPrefix + `[{"start":1001,"returned":1002,"r\u0065turned":9002}]}` + "\n" + batch, 1, []string{`line 2: duplicate field "returned" in one object`}, false},
		"stamp in different case":                {headerLine + batchPrefix + `[{"start":1001,"returned":1002,"Returned":9002}]}` + "\n" + batch, 1, []string{`line 2: unknown field "Returned": the name is "returned"`}, false},
		"duplicate field":                        {headerLine + strings.Replace(batch, `"lanes"`, `"op":"stop","lanes"`, 1) + batch, 1, []string{`line 2: duplicate field "op" in one object`}, false},
		"value of the wrong type":                {headerLine + batchPrefix + `[{"start":"soon"}]}` + "\n" + batch, 1, []string{"batch: samples.start cannot hold a string"}, false},
		"samples that are not a list":            {headerLine + batchPrefix + `{}}` + "\n" + batch, 1, []string{"not a list"}, false},
		"a fraction of a nanosecond":             {headerLine + batchPrefix + `[{"start":1001.5}]}` + "\n", 0, []string{"1001.5"}, false},
		"a number beyond 64 bits":                {headerLine + batchPrefix + `[{"start":99999999999999999999}]}` + "\n", 0, []string{"99999999999999999999"}, false},
		"a line longer than the limit":           {headerLine + strings.Repeat("x", MaxLine+1) + "\n" + batch, 1, []string{"line 2: longer than 16 MiB"}, false},
		"more samples than the maximum of lanes": {headerLine + batchPrefix + "[" + strings.Repeat("{},", MaxLanes) + "{}]}\n", 0, []string{"more than 10000 samples"}, false},
		"a batch after the end mark":             {headerLine + `{"type":"end","status":"done"}` + "\n" + batch, 0, []string{"a batch line after the end mark"}, false},
		"second record after the first":          {headerLine + batch + headerLine + batch, 1, []string{"line 3: a second header"}, false},
		"truncated tail":                         {headerLine + batch + batch[:50], 1, nil, true},
		"long truncated tail":                    {headerLine + batch + strings.Repeat("x", MaxLine+1), 1, nil, true},
		"tail without a newline":                 {headerLine + batch + strings.TrimSuffix(batch, "\n"), 2, nil, true},
		"garbage before the header is skipped":   {"oops\n" + headerLine + batch, 1, []string{"line 1:"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(Read(strings.NewReader(test.text)))(t)
			if len(got.Batches) != test.batches || got.Truncated != test.truncated {
				t.Errorf("%d batches, truncated %v", len(got.Batches), got.Truncated)
			}
			if len(got.Problems) != len(test.problems) || got.ProblemCount != len(test.problems) {
				t.Fatalf("problems %v, count %d", got.Problems, got.ProblemCount)
			}
			for i, want := range test.problems {
				check.That(t, strings.Contains(got.Problems[i].String(), want), "problem %q lacks %q", got.Problems[i], want)
			}
		})
	}
}

func TestCompressionBombIsNotRead(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := must.Get(newEncoder(&packed))(t)
	whole, _ := written(t, few())
	must.Get(io.WriteString(w, whole))(t)
	for range 100 {
		must.Get(io.WriteString(w, strings.Repeat(strings.Repeat(" ", 1<<10-1)+"\n", 1<<10)))(t)
	}
	must.OK(t, w.Close())
	r := NewReader(bytes.NewReader(packed.Bytes()))
	defer r.Close()
	n := 0
	for ; r.err == nil; n++ {
		_, _ = r.Next() // the error stays
	}
	check.Is(t, r.err, io.EOF)
	if n-1 != len(few()) || !r.Truncated() || r.ProblemCount() != 1 || !strings.Contains(r.Problems()[0].Reason, "unpacks to more than 100 times its size") {
		t.Errorf("%d lines, truncated %v, %v", n-1, r.Truncated(), r.Problems())
	}
	if most := anyRatio + maxRatio*packed.Len() + 1<<20; r.lines.number<<10 > most {
		t.Errorf("%d blank lines of 1 KiB were read, want at most %d bytes", r.lines.number, most)
	}
}

func TestOtherFilesAreNotRecords(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		cause error
		want  string
	}{
		"nothing":                        {"", ErrNotRecord, "it is empty"},
		"a record without header":        {`{"type":"end","status":"done"}` + "\n", ErrNotRecord, `line 1 is a "end" line in place of the header`},
		"other JSON Lines":               {"{\"a\":1}\n{\"a\":2}\n", ErrNotRecord, "line 1: a JSON object without a type"},
		"prose":                          {"Dear reader,\n", ErrNotRecord, "line 1: not a JSON object"},
		"a long text":                    {strings.Repeat("x\n", 1<<20), ErrNotRecord, "line 1: not a JSON object"},
		"endless line":                   {strings.Repeat("x", MaxLine+2) + "\n", ErrNotRecord, "line 1: longer than 16 MiB"},
		"truncated header":               {headerLine[:12], ErrNotRecord, "ends before the header is complete"},
		"a header of schema 0":           {`{"type":"header"}` + "\n", ErrNotRecord, "schema is 0 and must be at least 1"},
		"header with a too large number": {`{"type":"header","schema":1,"run_id":"x","environment":{"cpus":1e400}}` + "\n" + `{"type":"end","status":"done"}` + "\n", ErrNotRecord, "line 1: header: environment.cpus cannot hold a number 1e400"},
		"a broken header":                {`{"type":"header","schema":1,"run_id":5}` + "\n" + `{"type":"end","status":"done"}` + "\n", ErrNotRecord, "line 1: header: run_id cannot hold a number"},
		"empty zstd":                     {string(zstdMagic), ErrNotRecord, "it ends before the header"},
		"damaged zstd":                   {string(zstdMagic) + "\x04\x58\xff\xff\xff\xff\xff", ErrNotRecord, "damaged"},
		"a newer schema":                 {`{"type":"header","schema":7,"tare_version":"v3.1.0"}` + "\n", ErrNewerSchema, "schema 7, supported up to 1; open it with tare v3.1.0 or later"},
		"newer schema with a different structure": {`{"type":"header","schema":7,"environment":[]}` + "\n", ErrNewerSchema, "open it with a later tare"},
	} {
		_, err := Read(strings.NewReader(test.text))
		if !errors.Is(err, test.cause) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.jsonl")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "give the path") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTruncatedCompressedRecordKeepsWholeBlocks(t *testing.T) {
	text, ends := compressed(t)
	for cut := range text {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		got, err := Read(bytes.NewReader(text[:cut]))
		if whole == 0 {
			if !errors.Is(err, ErrNotRecord) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		must.OK(t, err)
		if n := count(got); n != whole || !got.Truncated || len(got.Problems) != 0 {
			t.Fatalf("cut at %d: %d lines of %d, truncated %v, problems %v", cut, n, whole, got.Truncated, got.Problems)
		}
	}
}

func TestDamagedCompressionKeepsTheLinesBefore(t *testing.T) {
	text, ends := compressed(t)
	for at := ends[1]; at < ends[2]; at++ {
		damaged := bytes.Clone(text)
		damaged[at] ^= 0xff
		got, err := Read(bytes.NewReader(damaged))
		if err != nil || len(got.Targets) != 1 {
			t.Fatalf("damaged at %d: %v", at, err)
		}
		if !got.Truncated && got.ProblemCount == 0 {
			t.Fatalf("damage at %d was not noticed", at)
		}
	}
}

// compressed returns a compressed record and the position at which each line's block
// ends.
func compressed(t *testing.T) (text []byte, ends []int) {
	t.Helper()
	var b bytes.Buffer
	encoder := must.Get(newEncoder(&b))(t)
	w := &Writer{types: standard(), out: &b, encoder: encoder}
	for _, line := range few() {
		must.OK(t, w.Write(line))
		ends = append(ends, b.Len())
	}
	must.OK(t, w.Close())
	return b.Bytes(), ends
}

func TestDiskErrorIsNotTheEnd(t *testing.T) {
	text, _ := written(t, few())
	in := io.MultiReader(strings.NewReader(text), iotest.ErrReader(syscall.EIO))
	if _, err := Read(in); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestAllProblemsAreCounted(t *testing.T) {
	got := must.Get(Read(strings.NewReader(headerLine + strings.Repeat("oops\n", 5*MaxProblems))))(t)
	if len(got.Problems) != MaxProblems || got.ProblemCount != 5*MaxProblems {
		t.Errorf("%d kept, %d counted", len(got.Problems), got.ProblemCount)
	}
}

func TestReasonsDoNotRepeatHugeValues(t *testing.T) {
	got, err := Read(strings.NewReader(headerLine + `{"type":"node","round":` + strings.Repeat("9", 1<<20) + "}\n"))
	if err != nil || len(got.Problems) != 1 || len(got.Problems[0].Reason) > reasonLength+len("…") {
		t.Errorf("%v, %d problems", err, len(got.Problems))
	}
}

func TestReaderReturnsEOFRepeatedly(t *testing.T) {
	r := NewReader(strings.NewReader(headerLine))
	must.Get(r.Next())(t)
	for range 3 {
		if line, err := r.Next(); line != nil || !errors.Is(err, io.EOF) {
			t.Errorf("got %v, %v", line, err)
		}
	}
	must.OK(t, errors.Join(r.Close(), r.Close()))
}

// A reader keeps only its buffers, the decoder's window, one line and the first problems,
// for records of any length.
func TestReadingUsesConstantMemory(t *testing.T) {
	lines := strings.Repeat(batchPrefix+`[{"start":1001}]}`+"\noops\n", 100)
	in := []io.Reader{strings.NewReader(headerLine)}
	for range 500 {
		in = append(in, strings.NewReader(lines))
	}
	r := NewReader(io.MultiReader(in...))
	must.Get(r.Next())(t)
	before := heap()
	for {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("50 000 batches and as many problems keep %d bytes", grown)
	}
	check.Equal(t, "problems", r.ProblemCount(), 50_000)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSkimReturnsEveryWholeLine(t *testing.T) {
	t.Parallel()
	const text = `{"type":"node","time":1}` + "\n\nnot json\n" + `{"time":1,"type":"later"}` + "\n" + `{"type":"end","status":"do`
	r := NewReader(strings.NewReader(text))
	var words []Type
	for {
		word, line, err := r.Skim()
		if errors.Is(err, io.EOF) {
			break
		}
		must.OK(t, err)
		if line, err := standard().Decode(line); (line != nil) != (word == TypeNode) || (err == nil) != (word != "") {
			t.Errorf("%q is %v, %v", word, line, err)
		}
		words = append(words, word)
	}
	if !slices.Equal(words, []Type{TypeNode, "", "", "later"}) || r.Skimmed() != int64(strings.LastIndex(text, "\n")+1) {
		t.Errorf("%q, %d bytes", words, r.Skimmed())
	}
}

func TestTooLongTextIsAnError(t *testing.T) {
	t.Parallel()
	var plain, packed bytes.Buffer
	encoder := must.Get(newEncoder(&packed))(t)
	w := NewWriter(io.MultiWriter(&plain, encoder))
	for _, line := range []any{Header{Experiment: "lifecycle"}, Target{Name: "runc"}, End{Status: "done"}} {
		must.OK(t, w.Write(line))
	}
	must.OK(t, encoder.Close())
	long := int64(plain.Len())
	for name, text := range map[string][]byte{"plain": plain.Bytes(), "packed": packed.Bytes()} {
		for most, want := range map[int64]error{long: nil, long - 1: ErrTooLong, 10: ErrTooLong} {
			r := NewReader(bytes.NewReader(text))
			r.AtMost(most)
			if all, err := r.All(); !errors.Is(err, want) || (err == nil) != (len(all) == 1 && all[0].End != nil) {
				t.Errorf("%s, at most %d of %d: %d records, %v", name, most, long, len(all), err)
			}
		}
	}
}
