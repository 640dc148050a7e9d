// Package tool imports the output of other tools as a lifecycle record: hyperfine,
// critest, containerd-stress, ptcr, Go benchmarks and time. Each format is recognized
// by its content. Each also states whether its output shows failed operations.
// [Imported.AddSamples] imports plain lists of times from any other tool.
package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// maxOperations is the maximum number of single times kept per output.
const maxOperations = 100_000

// output holds one tool run's results for one operation.
type output struct {
	line    int    // first line, from 1
	name    string // name in the output; "" if there is none
	command string // timed command, if known
	means   string // description of the end of the time
	op      setting.Op
	lanes   int
	batches []record.Batch // one per round, without target and round number
}

// found holds what a format found in a text.
type found struct {
	tool       string
	outputs    []output
	bad        []error  // outputs that could not be parsed
	left       []string // operations outside the lifecycle
	unknowable string   // why failures are not visible; "": they are
	at         map[string]int
}

// formats parse their own outputs in a text and ignore everything else.
var formats = []func(*transcript.Stream) found{hyperfine, hyperfineText, critest, stress, ptcr, goBenchmarks, times}

// object decodes an object that contains all these names, the first one at the top
// level. ok is false for any other object.
func object(o *transcript.Object, into any, names ...string) (ok bool, err error) {
	if !o.Has(names...) {
		return false, nil
	}
	if o.Err != nil {
		return true, fmt.Errorf("incomplete JSON document: %w", o.Err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(o.JSON, &top); err != nil {
		return true, err
	}
	if _, ok := top[names[0]]; !ok {
		return false, nil
	}
	return true, json.Unmarshal(o.JSON, into)
}

// single returns a batch with one operation of this duration. Whether it failed is unknown, as
// in most formats.
func single(ns float64) (record.Batch, error) {
	if !(ns >= 1 && ns < math.MaxInt64/4) {
		return record.Batch{}, fmt.Errorf("%g ns is not a valid time", ns)
	}
	return record.Batch{Released: 1, Unproven: true, Samples: []record.Sample{{Start: 1, Returned: 1 + int64(math.Round(ns))}}}, nil
}

// several returns a batch with a summary instead of single operations. How many failed is
// unknown, as in most formats.
func several(s record.Summary) record.Batch {
	return record.Batch{Released: 1, Unproven: true, Samples: []record.Sample{}, Summary: &s}
}

// hyperfine parses hyperfine --export-json. It has the time of each run in s. Since
// 1.13 it also has the exit codes, which are null after a signal.
func hyperfine(text *transcript.Stream) (f found) {
	f.tool = "hyperfine"
	for _, in := range text.Objects() {
		f.hyperfine(&in)
	}
	return f
}

func (f *found) hyperfine(in *transcript.Object) {
	var doc struct {
		Results []struct {
			Command   string    `json:"command"`
			Times     []float64 `json:"times"`
			ExitCodes []*int    `json:"exit_codes"`
		} `json:"results"`
	}
	ok, err := object(in, &doc, "results", "command", "mean")
	if err != nil {
		f.bad = append(f.bad, err)
	}
	if !ok || err != nil {
		return
	}
	for i, r := range doc.Results {
		o := hyperfined(r.Command, in.Line)
		switch {
		case len(r.Times) == 0 || len(r.Times) > maxOperations:
			err = fmt.Errorf("result %d has %d single times", i+1, len(r.Times))
		case r.ExitCodes == nil:
			f.unknowable = "hyperfine wrote no exit codes"
		case len(r.ExitCodes) != len(r.Times):
			err = fmt.Errorf("result %d has %d times and %d exit codes", i+1, len(r.Times), len(r.ExitCodes))
		}
		for k, s := range r.Times {
			if err != nil {
				break
			}
			var b record.Batch
			if b, err = single(s * 1e9); err == nil && r.ExitCodes != nil {
				b.Samples[0].Failure = exited(r.ExitCodes[k], r.Command)
			}
			b.Unproven = r.ExitCodes == nil
			o.batches = append(o.batches, b)
		}
		f.take(o, err)
		err = nil
	}
}

func hyperfined(command string, line int) output {
	return output{line: line, name: command, command: command, op: setting.Run, lanes: 1, means: "the command exited, as hyperfine has it"}
}

func exited(code *int, command string) *record.Failure {
	switch {
	case code == nil:
		return &record.Failure{Kind: record.FailExit, Detail: "ended by a signal", Command: command}
	case *code != 0:
		return &record.Failure{Kind: record.FailExit, Detail: fmt.Sprintf("exit status %d", *code), Command: command, Exit: *code}
	}
	return nil
}

// round adds an output with one batch. It becomes another round of an earlier output
// with the same key.
func (f *found) round(key string, o output, err error) {
	if i, met := f.at[key]; err == nil && met && len(f.outputs[i].batches) < maxOperations {
		f.outputs[i].batches = append(f.outputs[i].batches, o.batches...)
		return
	}
	if err == nil && f.at == nil {
		f.at = map[string]int{}
	}
	if err == nil {
		f.at[key] = len(f.outputs)
	}
	f.take(o, err)
}

func (f *found) take(o output, err error) {
	if err != nil {
		f.bad = append(f.bad, fmt.Errorf("line %d: %w", o.line, err))
		return
	}
	f.outputs = append(f.outputs, o)
}

// criOps maps critest's operation names. Status and image pulls are not part of a
// lifecycle.
var criOps = map[string]setting.Op{
	"CreatePod": setting.RunPod, "StopPod": setting.StopPod, "RemovePod": setting.RemovePod,
	"CreateContainer": setting.Create, "StartContainer": setting.Start, "StopContainer": setting.Stop, "RemoveContainer": setting.Remove,
}

// critest parses the results that critest -benchmark writes to its output directory
// (cri-tools since 1.22). They have the time of every operation of every lifecycle, in
// ns. A failed lifecycle ends the benchmark and leaves no line.
func critest(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "critest", "critest records only successful lifecycles"
	for _, in := range text.Objects() {
		f.critest(&in)
	}
	return f
}

func (f *found) critest(in *transcript.Object) {
	var doc struct {
		Names      []string `json:"operationsNames"`
		Parallel   int      `json:"numParallel"`
		Datapoints []struct {
			Durations []int64 `json:"operationsDurationsNs"`
		} `json:"datapoints"`
	}
	ok, err := object(in, &doc, "operationsNames", "datapoints")
	switch {
	case !ok:
		return
	case err == nil && len(doc.Datapoints) > maxOperations:
		err = fmt.Errorf("it has more than %d datapoints", maxOperations)
	case err == nil && len(doc.Datapoints) == 0:
		err = errors.New("it has no datapoints")
	}
	if err != nil {
		f.bad = append(f.bad, err)
		return
	}
	for i, name := range doc.Names {
		op, known := criOps[name]
		if !known {
			f.left = append(f.left, name)
			continue
		}
		var times []float64
		for k, d := range doc.Datapoints {
			if len(d.Durations) != len(doc.Names) {
				err = fmt.Errorf("datapoint %d has %d times of %d operations", k+1, len(d.Durations), len(doc.Names))
				break
			}
			times = append(times, float64(d.Durations[i]))
		}
		o := output{line: in.Line, command: "CRI: " + name, means: "the call returned, as critest has it", op: op, lanes: max(doc.Parallel, 1)}
		if err == nil {
			o.batches, err = together(times, o.lanes)
		}
		f.take(o, err)
		err = nil
	}
}

// together returns one round per operation if they ran alone. Parallel operations
// become one summary, because the output does not say which were released together.
func together(times []float64, lanes int) (all []record.Batch, err error) {
	sum, least, most := 0.0, math.Inf(1), 0.0
	for _, t := range times {
		b, err := single(t)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
		sum, least, most = sum+t, min(least, t), max(most, t)
	}
	if lanes == 1 {
		return all, nil
	}
	s := record.Summary{Count: int64(len(times)), Mean: int64(sum / float64(len(times)))}
	if len(times) > 2 {
		s.Trimmed = int64((sum - least - most) / float64(len(times)-2))
	}
	return []record.Batch{several(s)}, nil
}

// stressed matches the last line of containerd-stress without --json.
var stressed = transcript.NewForm("create/start/delete", `create/start/delete (\d{1,12}) containers in ([\d.]{1,20}) seconds .*?(?:\bfailures=(\d{1,12}))?$`)

// stress parses the last output of containerd-stress, a line of JSON or of its log. Up
// to containerd 2.4 the number of failures is always 0.
func stress(text *transcript.Stream) (f found) {
	f.tool = "containerd-stress"
	take := func(line int, s record.Summary, err error) {
		b := several(s)
		if b.Unproven = s.Failed == 0; b.Unproven {
			f.unknowable = "containerd-stress always reports 0 failures"
		}
		f.take(output{line: line, command: "containerd-stress", means: "a container was created, started and deleted, as containerd-stress has it",
			op: setting.Run, lanes: 1, batches: []record.Batch{b}}, err)
	}
	printed := map[int64]bool{} // totals already found as JSON
	for _, in := range text.Objects() {
		var doc struct {
			Total    int64   `json:"total"`
			Failures int64   `json:"failures"`
			Seconds  float64 `json:"seconds"`
		}
		if ok, err := object(&in, &doc, "total", "failures", "seconds", "containersPerSecond"); ok {
			printed[doc.Total] = true
			take(in.Line, record.Summary{Count: doc.Total, Failed: doc.Failures, Seconds: doc.Seconds}, err)
		}
	}
	for _, l := range text.Lines {
		if m := stressed.Find(l.Text); m != nil {
			s := record.Summary{}
			s.Count, _ = strconv.ParseInt(m[1], 10, 64) // digits only, as below
			s.Failed, _ = strconv.ParseInt(m[3], 10, 64)
			s.Seconds, _ = strconv.ParseFloat(m[2], 64)
			if !printed[s.Count] {
				take(l.Number, s, nil)
			}
		}
	}
	return f
}
