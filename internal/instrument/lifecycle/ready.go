package lifecycle

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Ready is how exactly it is known when workloads were ready.
type Ready struct {
	// Figures are the resolution in the middle and at worst, and the time of the first
	// request that had a good answer, each where there is any.
	Figures []figure.Figure
	AtMost  int // workloads that were ready when they were asked first: their stamps are the latest that can be
	Asked   int
}

// readiness gathers what polls told.
type readiness struct {
	resolutions, requests []float64
	atMost, asked         int
}

func (r *readiness) add(s *record.Sample) {
	if s.Failure != nil || s.Polls == 0 || s.Ready == 0 {
		return
	}
	r.asked++
	if d, ok := s.Resolution(); ok {
		r.resolutions = append(r.resolutions, float64(d))
	} else {
		r.atMost++
	}
	if s.Request > 0 {
		r.requests = append(r.requests, float64(s.Request))
	}
}

func (r *readiness) is(labels figure.Labels) Ready {
	out := Ready{AtMost: r.atMost, Asked: r.asked}
	if n := len(r.resolutions); n > 0 {
		for i, q := range stat.Quantiles(r.resolutions, 0.5, 1) {
			f := about("ready-resolution", figure.Nanoseconds, labels.With("quantile", []string{"p50", "max"}[i]))
			f.Estimate = figure.Exactly(q)
			f.Estimate.N = n
			out.Figures = append(out.Figures, f)
		}
	}
	if len(r.requests) > 0 {
		f := about("first-request", figure.Nanoseconds, labels)
		f.Better, f.Estimate = figure.Less, middle(r.requests)
		out.Figures = append(out.Figures, f)
	}
	return out
}

// text says how exactly the stamp is known.
func (r *Ready) text() string {
	text := ""
	for i := range r.Figures {
		f := &r.Figures[i]
		switch {
		case f.Quantity == "first-request":
			text += ", first request " + page.Duration(f.Estimate.Value)
		case f.Labels.Get("quantile") == "max":
			text += ", at worst " + page.Duration(f.Estimate.Value)
		default:
			text += ", known to " + page.Duration(f.Estimate.Value)
		}
	}
	if r.AtMost > 0 {
		text += fmt.Sprintf(", at most in %d of %d: ready when first asked", r.AtMost, r.Asked)
	}
	return text
}
