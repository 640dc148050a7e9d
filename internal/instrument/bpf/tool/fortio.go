// Package tool imports the output of fortio HTTP loads as a bpf record. Such a record
// has the load, but no programs, CPU times or limits.
package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/record"
)

// Imported collects the results of several texts into one record.
type Imported struct {
	Plan     bpf.Options
	Points   []record.Point
	Findings []record.Finding
	rounds   map[int]int // by connections
	label    string
}

// histogram is fortio's histogram, in seconds; a bucket is (Start, End].
type histogram struct {
	Count       int64
	Max, Avg    float64
	Percentiles []percentile
}

type percentile struct{ Percentile, Value float64 }

// result is the output of fortio load -json, or parsed from its text output.
type result struct {
	RunType           string
	RequestedQPS      string
	ActualDuration    int64 // ns
	NumThreads        int
	Version           string
	URL               string
	DisableKeepAlive  bool
	SocketCount       int64
	RetCodes          map[string]int64
	DurationHistogram *histogram
	ErrorsDuration    *histogram `json:"ErrorsDurationHistogram"`

	line int
}

// Add adds the results in a text: JSON, or what fortio prints. A bpf record has no
// targets, one address and one rate. Results with another label, address or rate are
// left out and reported.
func (g *Imported) Add(file, label string, text *transcript.Stream) {
	for _, o := range text.Objects() {
		if o.Has("RunType", "DurationHistogram") {
			var r result
			err := o.Err
			if err == nil {
				err = json.Unmarshal(o.JSON, &r)
			}
			g.add(fmt.Sprintf("%s:%d", file, o.Line), label, &r, err)
		}
	}
	for _, r := range printed(text) {
		g.add(fmt.Sprintf("%s:%d", file, r.line), label, r, nil)
	}
}

func (g *Imported) add(file, label string, r *result, err error) {
	var p record.Point
	if err == nil {
		p, err = r.point(file)
	}
	if err == nil {
		err = record.Validate(&p)
	}
	if err != nil {
		g.find("unread", finding.Warning, file+": the result of fortio could not be read: "+err.Error(), "give all of what fortio load printed, or wrote by -json")
		return
	}
	if g.rounds == nil {
		g.label = label
		g.rounds, g.Plan = map[int]int{}, bpf.DefaultsOfLoad()
		g.Plan.Title, g.Plan.Datapath, g.Plan.Rounds, g.Plan.Connections = "imported results", "", 1, nil
		g.Plan.Names, g.Plan.Idle, g.Plan.KeepAlive, g.Plan.QPS = []string{"*"}, 0, p.Asked.KeepAlive, p.Asked.QPS
		g.Plan.URL = p.Asked.URL
	} else if why := g.apart(label, p.Asked); why != "" {
		g.find("apart", finding.Warning, file+": the load was left out: "+why, "import it separately: a record has loads of one address, one rate and one label")
		return
	}
	p.Round = g.rounds[p.Asked.Connections]
	g.rounds[p.Asked.Connections]++
	g.Plan.Rounds = max(g.Plan.Rounds, p.Round+1)
	g.Plan.Duration = max(g.Plan.Duration, time.Duration(p.Ended-p.Begun).Round(time.Second), time.Second) // rounded to the requested duration, so that runs compare
	if p.Round == 0 {
		g.Plan.Connections = append(g.Plan.Connections, p.Asked.Connections)
	}
	g.Points = append(g.Points, p)
}

// apart returns why a load cannot be in one table with the earlier ones, or "".
func (g *Imported) apart(label string, asked record.Asked) string {
	first := g.Points[0].Asked
	first.Connections, first.Seconds = asked.Connections, asked.Seconds
	switch {
	case g.label != label:
		return fmt.Sprintf("its label is %s, and earlier loads have %s", label, g.label)
	case first != asked:
		return "its address, rate or kind of connections differs from earlier loads"
	}
	return ""
}

func (g *Imported) find(code, level, message, advice string) {
	g.Findings = append(g.Findings, record.Finding{Code: bpf.ImportedFindings + code, Level: level, Message: message, Advice: advice})
}

// Close adds the finding that applies to all imported results.
func (g *Imported) Close() {
	if len(g.Points) == 0 {
		return
	}
	g.find("environment", finding.Note, "imported: fortio timed these requests; machines, programs, CPU time and limits are unknown, and quantiles are fortio's own, from histogram buckets that include failed requests",
		"run tare bpf load to measure them with the cost of programs")
}

// point converts a result to a point of the record.
func (r *result) point(file string) (p record.Point, err error) {
	h := r.DurationHistogram
	switch {
	case r.RunType != "HTTP":
		return p, fmt.Errorf("it is of %.40q: loads of HTTP are taken", r.RunType)
	case h == nil || h.Count <= 0 || r.ActualDuration <= 0 || r.NumThreads <= 0:
		return p, errors.New("it has no requests")
	}
	qps, _ := strconv.ParseFloat(r.RequestedQPS, 64) // "max" becomes 0, unlimited
	s := record.Sent{Requests: h.Count, Mean: ns(h.Avg), Max: ns(h.Max), Sockets: r.SocketCount, Client: "fortio " + r.Version, Failures: map[string]int64{}}
	answered := int64(0)
	for code, n := range r.RetCodes {
		if strings.HasPrefix(code, "2") {
			answered += n
		} else {
			s.Failures["status "+code] = n
		}
	}
	if s.Errors = h.Count - answered; r.ErrorsDuration != nil {
		s.Errors = r.ErrorsDuration.Count
	}
	s.QPS = float64(s.Requests-s.Errors) / (float64(r.ActualDuration) / 1e9) // fortio's rate includes failed requests
	for _, q := range h.Percentiles {
		if at := map[float64]*int64{50: &s.P50, 90: &s.P90, 99: &s.P99, 99.9: &s.P999}[q.Percentile]; at != nil {
			*at = ns(q.Value)
		}
	}
	return record.Point{Type: record.TypePoint, Case: record.CaseLoad, Datapath: "imported", Phase: record.PhaseLoad, Source: file,
		Asked: record.Asked{URL: r.URL, Connections: r.NumThreads, QPS: max(qps, 0), KeepAlive: !r.DisableKeepAlive, Seconds: float64(r.ActualDuration) / 1e9, Statistics: true},
		Begun: 1, Ended: 1 + r.ActualDuration, Sent: &s, ClientCPU: -1, ServerCPU: -1, NodeCPU: -1, Runs: []record.ProgramRun{}}, nil
}

func ns(seconds float64) int64 {
	if v := seconds * 1e9; v > 0 && v < math.MaxInt64/4 {
		return int64(math.Round(v))
	}
	return 0
}
