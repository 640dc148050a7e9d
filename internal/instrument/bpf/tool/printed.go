package tool

import (
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/transcript"
)

// lines are the lines of fortio's text output that are parsed, with their effect on the
// result. The first two begin a result.
var lines = []struct {
	transcript.Form
	take func(r *result, m []string)
}{
	{transcript.NewForm("Fortio ", `Fortio (\S{1,40}) running at .*: (https?://\S{1,1000})$`), func(r *result, m []string) { r.Version, r.URL = m[1], m[2] }},
	{transcript.NewForm("Starting at ", `^Starting at (max|[\d.-]{1,20}) qps with (\d{1,9}) thread`), func(r *result, m []string) { r.RequestedQPS, r.NumThreads = m[1], int(integer(m[2])) }},
	{transcript.NewForm("Ended after ", `^Ended after (\S{1,40}) : \d+ calls`), func(r *result, m []string) {
		d, _ := time.ParseDuration(m[1])
		r.ActualDuration = int64(d)
	}},
	{transcript.NewForm("Aggregated ", `^Aggregated Function Time : count (\d{1,18}) avg (\S{1,30}) .* max (\S{1,30})`), func(r *result, m []string) {
		r.DurationHistogram = &histogram{Count: integer(m[1]), Avg: float(m[2]), Max: float(m[3])}
	}},
	{transcript.NewForm("Error cases ", `^Error cases : (?:count (\d{1,18}) |no data)`), func(r *result, m []string) { r.ErrorsDuration = &histogram{Count: integer(m[1])} }},
	{transcript.NewForm("# target ", `^# target ([\d.]{1,20})% (\S{1,30})$`), func(r *result, m []string) {
		if h := r.DurationHistogram; h != nil && r.ErrorsDuration == nil && len(h.Percentiles) < 100 {
			h.Percentiles = append(h.Percentiles, percentile{float(m[1]), float(m[2])})
		}
	}},
	{transcript.NewForm("Sockets used", `^Sockets used: (\d{1,18})`), func(r *result, m []string) { r.SocketCount = integer(m[1]) }},
	{transcript.NewForm("Code ", `^Code +(-?\d{1,9}) : (\d{1,18}) `), func(r *result, m []string) {
		if len(r.RetCodes) < 1000 {
			r.RunType, r.RetCodes[m[1]] = "HTTP", integer(m[2])
		}
	}},
}

func integer(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n } // 0 if s is not a number
func float(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }

// printed returns the results in fortio's text output. A result extends to the line
// before the next one begins.
func printed(text *transcript.Stream) (all []*result) {
	var r *result
	for _, l := range text.Lines {
		for k := range lines {
			m := lines[k].Find(l.Text)
			if m == nil {
				continue
			}
			if r == nil || k == 0 || k == 1 && r.NumThreads != 0 {
				r = &result{line: l.Number, RetCodes: map[string]int64{}, RunType: "a load without codes of HTTP"}
			}
			had := r.DurationHistogram
			if lines[k].take(r, m); r.DurationHistogram != had {
				all = append(all, r)
			}
			break
		}
	}
	return all
}
