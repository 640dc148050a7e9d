package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const stored = "../../../record/testdata/v1/"

// sample is a page and the command that writes it.
type sample struct {
	name    string
	command string // RECORDS is replaced by the stored records, RUNS by a folder of runs
}

var samples = []sample{
	{"lifecycle", "report RECORDS/lifecycle.jsonl"},
	{"overhead", "report RECORDS/overhead.jsonl"},
	{"storage", "report RECORDS/storage.jsonl"},
	{"startup", "report RECORDS/startup.jsonl"},
	{"bpf", "report RECORDS/bpf-load.jsonl"},
	{"kata-io", "report ../../../published/kata-io/record.jsonl"},
	{"several", "report RECORDS/bpf-memory.jsonl RECORDS/startup-logs.jsonl"},
	{"compare", "compare RECORDS/lifecycle.jsonl --col target"},
	{"gate", "gate RUNS/1.jsonl RUNS/24.jsonl"},
	{"history", "history RUNS"},
}

// written caches the written pages.
var written sync.Map

// html returns the page.
func (s sample) html(t *testing.T) string {
	t.Helper()
	once, _ := written.LoadOrStore(s.name, sync.OnceValue(func() string {
		var out, errs bytes.Buffer
		command := strings.ReplaceAll(s.command, "RECORDS/", stored)
		if strings.Contains(command, "RUNS") {
			command = strings.ReplaceAll(command, "RUNS", runs(t))
		}
		args := strings.Fields(command + " --format html")
		code := cli.Execute(t.Context(), args, cli.Streams{Out: &out, Err: &errs})
		check.That(t, code != cli.ExitUsage, "exit %d: %s", code, &errs)
		return out.String()
	}))
	text := once.(func() string)()
	must.That(t, text != "", "no page")
	return text
}

// runs writes a folder with 24 runs of one measurement; runc is slower in the second
// half.
func runs(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile(stored + "lifecycle.jsonl"))(t)
	dir := t.TempDir()
	for n := 1; n <= 24; n++ {
		var out bytes.Buffer
		for line := range bytes.Lines(text) {
			var fields map[string]any
			must.OK(t, json.Unmarshal(line, &fields))
			switch fields["type"] {
			case "header":
				fields["run_id"], fields["started"] = fmt.Sprintf("run%d", n), fmt.Sprintf("2026-11-%02dT11:00:00Z", n)
			case "batch":
				for _, s := range fields["samples"].([]any) {
					slow(s.(map[string]any), n, fields["target"] == "runc")
				}
			}
			must.OK(t, json.NewEncoder(&out).Encode(fields))
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", n)), out.Bytes(), 0o600))
	}
	return dir
}

// slow changes a sample slightly for the nth run, as if the runtime had become slower.
func slow(sample map[string]any, n int, slower bool) {
	factor := 1 + 0.004*float64(n*7%5)
	if slower && n > 12 {
		factor *= 1.3
	}
	began, _ := sample["start"].(float64)
	for _, stamp := range []string{"spawned", "returned", "running", "first", "seen", "exited"} {
		if at, ok := sample[stamp].(float64); ok && at > 0 {
			sample[stamp] = math.Round(began + (at-began)*factor)
		}
	}
}

// report returns the page of records.
func report(t *testing.T, recs ...*record.Record) string {
	t.Helper()
	var judged []instrument.Judged
	for _, rec := range recs {
		j := must.Get(all.Instruments.Judge(rec))(t)
		judged = append(judged, instrument.Judged{Record: rec, Judgement: j})
	}
	var out bytes.Buffer
	must.OK(t, all.Instruments.Report(&out, "html", judged, page.Options{}))
	return out.String()
}

func load(t testing.TB, path string) *record.Record {
	t.Helper()
	return must.Get(record.Load(filepath.Clean(path)))(t)
}

// largest is the maximum size of a page for a record with manySamples.
const (
	manySamples = 100_000
	largest     = 15_000_000
)

// large writes a record with n samples. It repeats a small run with a hundred lanes per
// batch.
func large(t testing.TB, samples int) *record.Record {
	t.Helper()
	rec := load(t, stored+"lifecycle.jsonl")
	const lanes = 100
	var pattern []record.Batch
	for _, b := range rec.Batches {
		if b.Phase == record.PhaseMeasure && b.Lanes == 5 && len(b.Samples) > 0 {
			pattern = append(pattern, b)
		}
	}
	last := 0
	for _, b := range pattern {
		last = max(last, b.Round)
	}
	rec.Batches = nil
	for n := 0; n < samples; n += lanes {
		b := pattern[n/lanes%len(pattern)]
		b.Round += n / lanes / len(pattern) * (last + 1)
		b.Lanes, b.Samples = lanes, nil
		for lane := range lanes {
			s := pattern[n/lanes%len(pattern)].Samples[lane%5]
			s.Lane = lane
			// All samples differ, as in a real run.
			for _, at := range []*int64{&s.Returned, &s.Running, &s.First, &s.Seen, &s.Exited} {
				if *at > 0 {
					*at += int64(lane*7919 + n%99991)
				}
			}
			b.Samples = append(b.Samples, s)
		}
		rec.Batches = append(rec.Batches, b)
	}
	rec.Header.Plan = bytes.Replace(rec.Header.Plan, []byte(`"lanes":[1,5]`), []byte(`"lanes":[100]`), 1)
	return rec
}

func TestHundredThousandSamplesFitIntoAFewMegabytes(t *testing.T) {
	t.Parallel()
	html := report(t, large(t, manySamples))
	t.Logf("%d bytes", len(html))
	check.That(t, len(html) <= largest, "%d bytes", len(html))
	p := newTab(t)
	p.show("large", html)
	p.await(drawn)
	if text := eval[string](p, `() => document.querySelector('main').innerText`); !strings.Contains(text, "100 lanes") || eval[int](p, `() => document.querySelectorAll('figure').length`) < 3 {
		t.Errorf("page of a large record:\n%.2000s", text)
	}
}
