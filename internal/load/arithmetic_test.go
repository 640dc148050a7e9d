package load

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestBinsAreContiguousAndNarrow(t *testing.T) {
	for i := range allBins {
		got := binOf(upper(i))
		must.That(t, got == i, "the upper bound of bin %d is in bin %d", i, got)
		must.That(t, i == 0 || binOf(upper(i-1)+1) == i, "bin %d does not start after bin %d", i, i-1)
		must.That(t, i == 0 || float64(upper(i)-upper(i-1)) <= max(1, float64(upper(i))/128), "bin %d is too wide: %d to %d", i, upper(i-1), upper(i))
	}
	got := binOf(1 << 62)
	check.That(t, got == allBins-1, "a huge latency is in bin %d of %d", got, allBins)
}

func TestMergedQuantilesMatchAllLatencies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []int64
	var parts []Result
	for i := range 4 {
		var h histogram
		for range 1000 * (i + 1) {
			ns := int64(random.ExpFloat64() * 1e6 * float64(i+1))
			all = append(all, ns)
			h.add(ns)
		}
		n := int64(1000 * (i + 1))
		parts = append(parts, Result{
			Sent:      record.Sent{Requests: n + 1, Errors: 1, QPS: float64(n), Max: h.max.Load(), Mean: h.sum.Load() / n, Sockets: 2, OpenLoop: true, Failures: map[string]int64{"status 503": 1}},
			Histogram: h.bins(), CPU: 10, Elapsed: int64(i),
		})
	}
	slices.Sort(all)
	r := Merge(parts)
	for q, got := range map[float64]int64{0.5: r.P50, 0.9: r.P90, 0.99: r.P99, 0.999: r.P999} {
		want := all[int(q*float64(len(all)))-1]
		check.That(t, got >= want && float64(got) <= float64(want)*(1+1./128)+1, "quantile %g is %d, want %d", q, got, want)
	}
	var sum int64
	for _, ns := range all {
		sum += ns
	}
	want := sum / int64(len(all))
	check.That(t, r.Mean >= want-2 && r.Mean <= want+2, "the mean is %d, want %d", r.Mean, want)
	check.That(t, r.Requests == 10004 && r.Errors == 4 && r.QPS == 10000 && r.Max == all[len(all)-1] && r.Sockets == 8 && r.CPU == 40 &&
		r.Elapsed == 3 && r.OpenLoop && r.Failures["status 503"] == 4 && total(r.Histogram) == 10000, "%+v", r.Sent)
	check.That(t, strings.HasPrefix(r.Client, "fortio"), "client %q, want fortio", r.Client)
	got := Merge(nil)
	check.That(t, got.P50 == 0 && got.Mean == 0 && got.Histogram != nil, "merging nothing gave %+v", got)
}

// Nine of ten requests were answered immediately. The tenth was never answered.
func TestMergedQuantilesIncludeUnansweredRequests(t *testing.T) {
	one := Result{
		Sent:      record.Sent{Requests: 95, Errors: 5, OpenLoop: true, Unsent: 5, Mean: 109, Max: 1000},
		Histogram: []Bin{{To: 10, Count: 90}}, Missing: []Bin{{To: 1000, Count: 10}},
	}
	r := Merge([]Result{one, one})
	check.That(t, r.P90 == 10 && r.P99 == 1000 && r.P999 == 1000 && r.Mean == 109 && r.Max == 1000 && r.Unsent == 10 && total(r.Missing) == 20,
		"%+v", r)
}

func TestMergedFailureReasonsAreBounded(t *testing.T) {
	var all []Result
	for i := range 20 {
		kinds := map[string]int64{}
		for k := range 10 {
			kinds[strings.Repeat("x", 10*i+k)] = 1
		}
		all = append(all, Result{Sent: record.Sent{Failures: kinds}})
	}
	sum := int64(0)
	r := Merge(all)
	for _, n := range r.Failures {
		sum += n
	}
	check.That(t, len(r.Failures) == kinds+1 && sum == 200, "%d reasons, %d failures", len(r.Failures), sum)
}

func TestFailuresAreCountedByReasonAndBounded(t *testing.T) {
	var f failures
	for _, line := range []string{
		`{"level":"err","msg":"Unable to connect","err":"dial tcp 127.0.0.1:1: connect: connection refused"}`,
		`{"level":"err","msg":"Unable to connect","err":"dial tcp [::1]:1: connect: connection refused"}`,
		`{"level":"err","msg":"Read error","err":"read tcp 127.0.0.1:9->127.0.0.1:1: read: connection reset by peer"}`,
		`{"level":"err","msg":"Timeout error (incomplete/invalid response)","err":"read tcp 127.0.0.1:9->127.0.0.1:1: i/o timeout"}`,
		`{"level":"err","msg":"Buffer too small for data"}`,
		`no JSON`,
	} {
		check.Equal(t, "Write", must.Get(f.Write([]byte(line)))(t), len(line))
	}
	got, unconnected := f.snapshot(), f.connect.Load()
	want := map[string]int64{
		"no connection: connect: connection refused": 2, "no answer: read: connection reset by peer": 1,
		"no answer in time": 1,
	}
	check.That(t, maps.Equal(got, want) && unconnected == 2, "got %v, and %d failed connections", got, unconnected)
	for i := range 1000 {
		b, _ := json.Marshal(map[string]string{"msg": "Read error", "err": strings.Repeat("y", i)})
		_, _ = f.Write(b)
	}
	got = f.snapshot()
	check.That(t, len(got) == kinds+1 && got["other"] != 0, "%d reasons, %d other failures", len(got), got["other"])
	for why := range got {
		check.That(t, len(why) <= 200, "a reason of %d bytes", len(why))
	}
}

func TestIncompleteAnswersAreReported(t *testing.T) {
	golden.Lines(t, "testdata/answers.txt", func(t *testing.T, line string) (any, error) {
		return string(judge([]byte(line))), nil
	})
	check.Equal(t, "answer that fills the buffer", judge([]byte("HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", buffer))), answerLarge)
}

// Each line has the settings ip_local_port_range, ip_local_reserved_ports and somaxconn,
// and the Need as JSON.
func TestTooFewPortsAndShortQueuesAreReportedWithTheFix(t *testing.T) {
	golden.Lines(t, "testdata/needs.txt", func(t *testing.T, line string) (any, error) {
		s, cells := system(t.TempDir()), strings.Split(line, "; ")
		for i, file := range []string{"ipv4/ip_local_port_range", "ipv4/ip_local_reserved_ports", "core/somaxconn"} {
			must.Write(t, filepath.Join(string(s), file), cells[i]+"\n")
		}
		var need Need
		must.OK(t, json.Unmarshal([]byte(cells[3]), &need))
		err := s.ports(need)
		if err == nil && need.Local {
			err = s.backlog(need.Connections)
		}
		return "enough", err
	})
}

func TestMainIgnoresOtherArguments(t *testing.T) {
	for _, args := range [][]string{nil, {}, {"--help"}, {"bpf", verbClient}, {"load-client"}} {
		code, handled := Main(args)
		check.That(t, !handled && code == 0, "%q was handled, with exit code %d", args, code)
	}
	want := []string{"PATH=/bin", "HOME=/"}
	check.Equal(t, "environment", environment([]string{"PATH=/bin", "LOGGER_LEVEL=debug", "HOME=/"}), want)
}
