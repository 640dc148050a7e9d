package tool

import (
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/instrument/transcript"
)

// lines are those of fortio's text that are read, each with what it says of a result.
var lines = sync.OnceValue(func() (all []struct {
	form *regexp.Regexp
	take func(r *result, m []string)
}) {
	integer := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n } // 0 where it is none
	float := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	for _, l := range []struct {
		form string
		take func(r *result, m []string)
	}{
		{`Fortio (\S{1,40}) running at .*: (https?://\S{1,1000})$`, func(r *result, m []string) { r.Version, r.URL = m[1], m[2] }},
		{`^Starting at (max|[\d.-]{1,20}) qps with (\d{1,9}) thread`, func(r *result, m []string) {
			r.RequestedQPS, r.NumThreads = m[1], int(integer(m[2]))
		}},
		{`^Ended after (\S{1,40}) : \d+ calls`, func(r *result, m []string) {
			d, _ := time.ParseDuration(m[1])
			r.ActualDuration = int64(d)
		}},
		{`^Aggregated Function Time : count (\d{1,18}) avg (\S{1,30}) .* max (\S{1,30})`, func(r *result, m []string) {
			r.DurationHistogram = &histogram{Count: integer(m[1]), Avg: float(m[2]), Max: float(m[3])}
		}},
		{`^Error cases : count (\d{1,18}) `, func(r *result, m []string) { r.ErrorsDuration = &histogram{Count: integer(m[1])} }},
		{`^Error cases : no data`, func(r *result, _ []string) { r.ErrorsDuration = &histogram{} }},
		{`^# target ([\d.]{1,20})% (\S{1,30})$`, func(r *result, m []string) {
			if h := r.DurationHistogram; h != nil && r.ErrorsDuration == nil && len(h.Percentiles) < 100 {
				h.Percentiles = append(h.Percentiles, percentile{float(m[1]), float(m[2])})
			}
		}},
		{`^Sockets used: (\d{1,18})`, func(r *result, m []string) { r.SocketCount = integer(m[1]) }},
		{`^Code +(-?\d{1,9}) : (\d{1,18}) `, func(r *result, m []string) {
			if r.RunType = "HTTP"; len(r.RetCodes) < 1000 {
				r.RetCodes[m[1]] = integer(m[2])
			}
		}},
	} {
		all = append(all, struct {
			form *regexp.Regexp
			take func(r *result, m []string)
		}{regexp.MustCompile(l.form), l.take})
	}
	return all
})

// printed are the results in fortio's text, each from its first line that is read to the
// one before the next result's.
func printed(text *transcript.Stream) (all []*result) {
	var r *result
	for _, l := range text.Lines {
		for k, one := range lines() {
			m := one.form.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			if r == nil || k == 0 || k == 1 && r.NumThreads != 0 {
				r = &result{line: l.Number, RetCodes: map[string]int64{}, RunType: "a load without codes of HTTP"}
			}
			if one.take(r, m); k == 3 {
				all = append(all, r)
			}
			break
		}
	}
	return all
}
