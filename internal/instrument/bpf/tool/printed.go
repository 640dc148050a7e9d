package tool

import (
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/transcript"
)

// forms match the lines of fortio's text output that are parsed.
var forms = []transcript.Form{
	transcript.NewForm("Fortio ", `Fortio (\S{1,40}) running at .*: (https?://\S{1,1000})$`),
	transcript.NewForm("Starting at ", `^Starting at (max|[\d.-]{1,20}) qps with (\d{1,9}) thread`),
	transcript.NewForm("Ended after ", `^Ended after (\S{1,40}) : \d+ calls`),
	transcript.NewForm("Aggregated ", `^Aggregated Function Time : count (\d{1,18}) avg (\S{1,30}) .* max (\S{1,30})`),
	transcript.NewForm("Error cases ", `^Error cases : (?:count (\d{1,18}) |no data)`),
	transcript.NewForm("# target ", `^# target ([\d.]{1,20})% (\S{1,30})$`),
	transcript.NewForm("Sockets used", `^Sockets used: (\d{1,18})`),
	transcript.NewForm("Code ", `^Code +(-?\d{1,9}) : (\d{1,18}) `),
}

// printed returns the results in fortio's text output. A result extends to the line
// before the next one begins.
func printed(text *transcript.Stream) (all []*result) {
	integer := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n } // 0 if s is not a number
	float := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	var r *result
	for _, l := range text.Lines {
		k, m := 0, []string(nil)
		for ; k < len(forms) && m == nil; k++ {
			m = forms[k].Find(l.Text)
		}
		if m != nil && (r == nil || k == 1 || k == 2 && r.NumThreads != 0) {
			r = &result{line: l.Number, RetCodes: map[string]int64{}, RunType: "a load without codes of HTTP"}
		}
		switch {
		case m == nil:
		case k == 1:
			r.Version, r.URL = m[1], m[2]
		case k == 2:
			r.RequestedQPS, r.NumThreads = m[1], int(integer(m[2]))
		case k == 3:
			d, _ := time.ParseDuration(m[1])
			r.ActualDuration = int64(d)
		case k == 4:
			r.DurationHistogram = &histogram{Count: integer(m[1]), Avg: float(m[2]), Max: float(m[3])}
			all = append(all, r)
		case k == 5:
			r.ErrorsDuration = &histogram{Count: integer(m[1])}
		case k == 6 && r.DurationHistogram != nil && r.ErrorsDuration == nil && len(r.DurationHistogram.Percentiles) < 100:
			r.DurationHistogram.Percentiles = append(r.DurationHistogram.Percentiles, percentile{float(m[1]), float(m[2])})
		case k == 7:
			r.SocketCount = integer(m[1])
		case k == 8 && len(r.RetCodes) < 1000:
			r.RunType, r.RetCodes[m[1]] = "HTTP", integer(m[2])
		}
	}
	return all
}
