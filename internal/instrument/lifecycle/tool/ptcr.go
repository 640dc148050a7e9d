package tool

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

var ptcrOps = map[string]setting.Op{"Create": setting.Create, "Start": setting.Start, "Stop": setting.Stop, "Remove": setting.Remove, "Run": setting.Run}

// ptcr parses the table that openEuler's ptcr prints. It has a table for each target
// and mode ("searially" or "parallerlly", spelled that way). Columns are the count, the
// total and the trimmed mean, in whole ms. The trimmed mean leaves out the shortest and
// the longest time. Some versions count failed operations, and some leave them out.
func ptcr(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "ptcr", "ptcr's table does not record failed operations"
	target, parallel := "", false
	for _, line := range text.Lines {
		if rest, ok := strings.CutPrefix(line.Text, "TargetName:"); ok {
			name, way, ok := strings.Cut(rest, "Type:")
			way = strings.TrimSpace(way)
			if target = strings.TrimSpace(name); !ok || way != "searially" && way != "parallerlly" {
				target = "" // the memory table that some versions append
			}
			parallel = way == "parallerlly"
			continue
		}
		columns := strings.Split(line.Text, "|")
		op, known := ptcrOps[strings.TrimSpace(columns[0])]
		if target == "" || !known || len(columns) != 4 {
			continue
		}
		o := output{line: line.Number, name: target, command: "ptcr: " + strings.TrimSpace(columns[0]), means: "the call returned, as ptcr has it", op: op, lanes: 1}
		s, err := ptcrRow(columns[1:])
		if err == nil && parallel {
			o.lanes = int(min(s.Count, record.MaxLanes))
		}
		o.batches = []record.Batch{several(s)}
		f.take(o, err)
	}
	return f
}

func ptcrRow(columns []string) (s record.Summary, err error) {
	var n [3]int64
	for i, c := range columns {
		if n[i], err = strconv.ParseInt(strings.TrimSpace(c), 10, 64); err != nil || n[i] < 0 || n[i] > 1e12 {
			return s, fmt.Errorf("%.40q is not a count of operations or ms", c)
		}
	}
	if n[0] == 0 || n[1] == 0 {
		return s, fmt.Errorf("%d operations in %d ms give no time", n[0], n[1])
	}
	s = record.Summary{Count: n[0], Mean: n[1] * 1e6 / n[0], Seconds: float64(n[1]) / 1e3}
	if n[0] > 2 { // ptcr prints 0 for fewer
		s.Trimmed = n[2] * 1e6
	}
	return s, nil
}

// goBenchmarks parses the Go benchmark format with golang.org/x/perf/benchfmt. Lines
// with the same name are rounds. A line with several iterations is their mean.
func goBenchmarks(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "Go benchmark", "the Go benchmark format does not record failed operations"
	r := benchfmt.NewReader(strings.NewReader(text.Text), "")
	for r.Scan() {
		switch line := r.Result().(type) {
		case *benchfmt.SyntaxError:
			f.bad = append(f.bad, fmt.Errorf("line %d: %.200s", text.Lines[line.Line-1].Number, line.Msg))
		case *benchfmt.Result:
			o := benchmark(line)
			o.line = text.Lines[o.line-1].Number
			s, ok := line.Value("sec/op")
			if !ok {
				s, ok = line.Value("latency-sec") // tare's own unit
			}
			if !ok {
				f.left = append(f.left, string(line.Name.Full()))
				continue
			}
			b, err := single(s * 1e9)
			if err == nil && line.Iters > 1 {
				b = several(record.Summary{Count: int64(line.Iters), Mean: b.Samples[0].Returned - 1})
			}
			o.batches = []record.Batch{b}
			f.round(line.Name.String(), o, err)
		}
	}
	if err := r.Err(); err != nil {
		f.bad = append(f.bad, err)
	}
	if len(f.outputs) == 0 && len(f.left) == 0 {
		return found{} // text that starts with "Benchmark" but has no results
	}
	return f
}

// benchmark extracts target, op and lanes from the parts of a name.
func benchmark(r *benchfmt.Result) output {
	base, parts := r.Name.Parts()
	_, line := r.Pos()
	o := output{line: line, name: string(base), command: string(r.Name.Full()), means: "an operation of the benchmark, as Go's testing package has it", lanes: 1}
	op := strings.ToLower(string(base))
	for _, part := range parts {
		key, value, _ := strings.Cut(strings.TrimPrefix(string(part), "/"), "=")
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		switch n, err := strconv.Atoi(value); {
		case key == "target":
			o.name = value
		case key == "op":
			op = value
		case key == "lanes" && err == nil && n > 0 && n <= record.MaxLanes:
			o.lanes = n
		}
	}
	known, err := setting.ParseOp(op)
	if o.op = cmp.Or(known, setting.Run); err == nil && o.name == string(base) {
		o.name = ""
	}
	return o
}
