package serve

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// maxPlans is the maximum number of plans with metrics, the latest ones.
const maxPlans = 200

// metered caches the metrics of a file until it changes.
type metered struct {
	info      fs.FileInfo
	documents []export.Document
}

// metrics writes the figures of the latest finished run of each plan, for Prometheus.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) error {
	text, err := s.produce(r, s.long, func(ctx context.Context, text *bytes.Buffer) error {
		all, _ := s.index.list(ctx)
		var documents []export.Document
		kept, seen := map[string]metered{}, map[string]bool{}
		for i := range all { // the newest first
			f := &all[i]
			if f.header == nil || f.open || len(seen) == maxPlans {
				continue
			}
			plan := f.header.Experiment + planOf(f.header, f.plan.Title, f.node).String() + string(f.plan.Cache)
			if seen[plan] {
				continue
			}
			seen[plan] = true
			kept[f.path] = s.meter(f)
			documents = append(documents, kept[f.path].documents...)
		}
		s.metered = kept
		return export.OpenMetrics(text, documents)
	})
	if err == nil {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		_, _ = text.WriteTo(w) // ignore write errors: the client disconnected
	}
	return err
}

// planOf returns the labels that identify a repeated plan: the name of its file, the number
// of the measure, and the node. Without a file the title of the options is used.
func planOf(h *record.Header, title, node string) figure.Labels {
	measure := ""
	if h.Of != nil {
		title = h.Of.Plan
		if h.Of.Measures > 1 {
			measure = strconv.Itoa(h.Of.Measure)
		}
	}
	return figure.Of("plan", title, "measure", measure, "node", node)
}

// meter judges the first record of a file. A record that cannot be judged has no metrics
// and is logged once.
func (s *site) meter(f *found) metered {
	if m, ok := s.metered[f.path]; ok && f.same(m.info) {
		return m
	}
	all, err := s.judged(f.path)
	if err != nil {
		s.Log.Printf("metrics of %s: %v", term.Clean(f.path), err)
		return metered{info: f.info}
	}
	documents := instrument.Documents(all[:1])
	d := &documents[0]
	d.Record = &record.Record{Header: d.Record.Header, End: d.Record.End}
	d.Apart = planOf(f.header, f.plan.Title, f.node)
	return metered{f.info, documents}
}
