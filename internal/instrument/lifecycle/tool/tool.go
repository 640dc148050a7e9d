// Package tool makes a record of lifecycle of what other tools printed: hyperfine, critest,
// containerd-stress, ptcr, Go benchmarks and time. Each format is known by its content, and
// says itself whether an operation that failed could be seen in it. [Imported.Samples] takes
// single times of any other tool.
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

// maxOperations is how many single times are kept of one output.
const maxOperations = 100_000

// output is what one run of a tool told of one operation.
type output struct {
	line    int    // where it begins, from 1
	name    string // what it calls itself; "" where it does not
	command string // what was timed, as far as it says
	means   string // likewise, in words
	op      setting.Op
	lanes   int
	batches []record.Batch // one for each round, without target and round
}

// found is what a format has in a text.
type found struct {
	tool       string
	outputs    []output
	bad        []error  // of what looks like one and cannot be used
	left       []string // operations that a lifecycle does not have
	unknowable string   // why a failed operation cannot be seen; "": it can
	at         map[string]int
}

// formats find what is theirs in a text. Of a text of another form they find nothing.
var formats = []func(*transcript.Stream) found{hyperfine, hyperfineText, critest, stress, ptcr, goBenchmarks, times}

// object takes an object that has these names in it, the first of them as its own; ok is
// false where it is none of them.
func object(o *transcript.Object, into any, names ...string) (ok bool, err error) {
	if !o.Has(names...) {
		return false, nil
	}
	if o.Err != nil {
		return true, fmt.Errorf("it is no whole JSON document: %w", o.Err)
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

// single is one operation that took so long.
func single(ns float64) (record.Batch, error) {
	if !(ns >= 1 && ns < math.MaxInt64/4) {
		return record.Batch{}, fmt.Errorf("%g ns is no time", ns)
	}
	return record.Batch{Released: 1, Samples: []record.Sample{{Start: 1, Returned: 1 + int64(math.Round(ns))}}}, nil
}

// several is what is told of several together.
func several(s record.Summary) record.Batch {
	return record.Batch{Released: 1, Samples: []record.Sample{}, Summary: &s}
}

// hyperfine is the form of hyperfine --export-json: s of each run, and since 1.13 its
// exit code, which is null after a signal.
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

// round takes an output of one batch, which is a round of an earlier one with its key.
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

// criOps are critest's names of what a lifecycle has; status and pulls it has not.
var criOps = map[string]setting.Op{
	"CreatePod": setting.RunPod, "StopPod": setting.StopPod, "RemovePod": setting.RemovePod,
	"CreateContainer": setting.Create, "StartContainer": setting.Start, "StopContainer": setting.Stop, "RemoveContainer": setting.Remove,
}

// critest is the form of the results that critest -benchmark writes into its output
// folder (cri-tools since 1.22): ns of every operation of every lifecycle. A lifecycle
// that fails ends the benchmark and leaves no line.
func critest(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "critest", "critest writes down lifecycles that succeeded only"
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

// together makes rounds of operations made alone. Of those with others beside them
// only what they come to is known: which were released together is not.
func together(times []float64, lanes int) (all []record.Batch, err error) {
	sum, least, most := 0.0, math.Inf(1), 0.0
	for _, t := range times {
		b, err := single(t)
		if err != nil {
			return nil, err
		}
		b.Unproven = true
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
	b := several(s)
	b.Unproven = true
	return []record.Batch{b}, nil
}

// stressed is the last line of containerd-stress without --json.
var stressed = transcript.NewForm("create/start/delete", `create/start/delete (\d{1,12}) containers in ([\d.]{1,20}) seconds .*?(?:\bfailures=(\d{1,12}))?$`)

// stress is what containerd-stress prints last, a line of JSON or of its log. Up to
// containerd 2.4 its failures are 0 whatever happened.
func stress(text *transcript.Stream) (f found) {
	f.tool = "containerd-stress"
	take := func(line int, s record.Summary, err error) {
		b := several(s)
		if b.Unproven = s.Failed == 0; b.Unproven {
			f.unknowable = "containerd-stress writes 0 failures whatever happened"
		}
		f.take(output{line: line, command: "containerd-stress", means: "a container was created, started and deleted, as containerd-stress has it",
			op: setting.Run, lanes: 1, batches: []record.Batch{b}}, err)
	}
	printed := map[int64]bool{} // in both forms
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
			s.Count, _ = strconv.ParseInt(m[1], 10, 64) // digits, as the others
			s.Failed, _ = strconv.ParseInt(m[3], 10, 64)
			s.Seconds, _ = strconv.ParseFloat(m[2], 64)
			if !printed[s.Count] {
				take(l.Number, s, nil)
			}
		}
	}
	return f
}
