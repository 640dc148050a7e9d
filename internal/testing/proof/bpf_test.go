package proof

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	httpload "github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Every connection of the load is exactly one run of the lookup, according to the clients
// and to a server without BPF.
func TestProgramRunsEqualConnectionsOfTheLoad(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		kept  bool
		own   bool // use tare's server, behind the lookup of a service
	}{
		"one connection per request": {nil, false, false},
		"kept alive":                 {[]string{"--keepalive"}, true, false},
		"one connection per request, behind a service": {nil, false, true},
		"kept alive, behind a service":                 {[]string{"--keepalive"}, true, true},
		"fixed rate":                                   {[]string{"--qps", "500"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := playBPF(t)
			var served, connected atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connected.Add(1)
				}
			}
			server.Start()
			defer server.Close()
			args := append([]string{"bpf", "load", "--datapath", "reference", "-c", "20", "-t", "200ms", "--idle", "100ms", "--rounds", "1"}, c.flags...)
			if c.own {
				args = append(args, "--datapath", "reference")
			} else {
				args = append(args, "--url", server.URL)
			}
			rec, _ := s.weigh(args...)
			var requests, sockets int64
			for _, p := range rec.Points {
				must.That(t, p.Failure == nil, "%s: %+v", p.Phase, p.Failure)
				want := int64(0)
				if p.Sent != nil {
					requests, sockets, want = requests+p.Sent.Requests, sockets+p.Sent.Sockets, p.Sent.Sockets
					if p.Sent.Errors > 0 || p.Sent.Requests < 20 || c.kept && want != 20 || !c.kept && want != p.Sent.Requests {
						t.Errorf("%+v", *p.Sent)
					}
				}
				if !p.Asked.Statistics {
					continue
				}
				got := ran(t, &p, "tare_connect4")
				check.That(t, got.Count == want, "%s: %d connections, %d runs", p.Phase, want, got.Count)
				got = ran(t, &p, "tare_sockops")
				check.That(t, got.Count >= want && (want != 0 || got.Count == 0), "%s: %d connections, %d runs of the event program", p.Phase, want, got.Count)
			}
			if c.own {
				return
			}
			check.That(t, served.Load() == requests && connected.Load() == sockets,
				"the server counts %d requests on %d connections, the clients %d on %d", served.Load(), connected.Load(), requests, sockets)
		})
	}
}

// ran returns the counters of a program in a phase.
func ran(t *testing.T, p *record.Point, name string) record.ProgramRun {
	t.Helper()
	i := slices.IndexFunc(p.Runs, func(r record.ProgramRun) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("%s: %s is not among %+v", p.Phase, name, p.Runs)
	}
	return p.Runs[i]
}

// Counts, times and memory match bpftool's for the same programs. Memory also matches the
// kernel's value for a descriptor.
func TestProgramFiguresMatchBpftool(t *testing.T) {
	playBPF(t)
	d, group := attachment(t)
	before := bpftool(t, d.IDs())
	view := make(chan listed, 1)
	go func() {
		view <- list(t, "--owner", strconv.Itoa(os.Getpid()), "--name", "tare_*", "--interval", "12s")
	}()
	time.Sleep(2 * time.Second) // the listing has started by now and lasts until long after the load
	sent := sending(t, d, group)
	v := <-view
	must.That(t, v.err == nil && len(v.Programs) == 2, "seen: %+v, %v", v.View, v.err)
	after := bpftool(t, d.IDs())
	for _, p := range v.Programs {
		b, a := before[p.ID], after[p.ID]
		if p.Runs != a.Count || p.Time != a.Time || p.Rate == nil || p.Rate.Runs > a.Count-b.Count {
			t.Errorf("%s: %d runs, %d ns, then by bpftool %+v, %+v before", p.Name, p.Runs, p.Time, a, b)
			continue
		}
		check.That(t, p.Name != "tare_connect4" || a.Count-b.Count == uint64(sent.Sockets),
			"%d connections, %d runs by bpftool", sent.Sockets, a.Count-b.Count)
		// If the load began before the interval, the interval has only a part of it.
		if took := p.Rate.Mean * float64(p.Rate.Runs); p.Rate.Runs == a.Count-b.Count && math.Abs(took-float64(a.Time-b.Time)) > 1 {
			t.Errorf("%s: %.0f ns in the interval; bpftool has %d", p.Name, took, a.Time-b.Time)
		}
		checkMemory(t, &p.Program, a)
	}
}

// sending makes connections in the datapath's cgroup and exits.
func sending(t *testing.T, d *datapath.Datapath, group string) httpload.Result {
	t.Helper()
	clients, err := httpload.Start(t.Context(), httpload.ClientOptions{
		URL: fmt.Sprintf("http://%s/", d.Service(0)), Connections: 4, Duration: time.Second, Groups: [][]string{{group}},
	})
	must.OK(t, err)
	defer clients.Close()
	sent, err := clients.Run(t.Context())
	must.That(t, err == nil && sent.Errors == 0, "%v: %+v", err, sent)
	return sent
}

// The memory of tare's own maps matches the kernel's values at the same time. More
// services need more memory.
func TestProgramMemoryMatchesFdinfo(t *testing.T) {
	s := playBPF(t)
	told, stop := descriptors()
	rec, j := s.weigh("bpf", "memory", "--datapath", "reference", "--services", "1,1000", "-c", "4", "-t", "1s", "--idle", "200ms")
	stop()
	compared := 0
	for _, p := range rec.Points {
		if p.Failure != nil || p.Asked.Statistics && len(p.Memory) != 5 { // of two programs and three maps
			t.Fatalf("%s: %+v, %+v", p.Phase, p.Memory, p.Failure)
		}
		for _, m := range p.Memory {
			compared++
			key := (held{m.ID, m.Map})
			check.That(t, told[key][m.Memory], "%s: %d bytes; the kernel reports %v", m.Name, m.Memory, told[key])
		}
	}
	check.Equal(t, "compared figures", compared, 2*3*5) // two service counts, three phases
	check.That(t, len(j.Growth) == 2 && j.Growth[0].Services == 1 && j.Growth[1].Maps >= j.Growth[0].Maps+999*16 &&
		j.Growth[1].Programs == j.Growth[0].Programs, "%+v", j.Growth)
}

// BPF programs run in the calls of processes with a CPU limit. Their time must count
// against that limit, whatever its size.
func TestProgramTimeCountsAgainstTheWorkloadsLimit(t *testing.T) { paysFor(t, "0.5", "1s") }

// paysFor measures programs under a CPU limit. If other processes use the CPUs, the
// verdict may be undecided.
func paysFor(t *testing.T, cpus, long string) {
	s := playBPF(t)
	rec, j := s.weigh("bpf", "quota", "--cpus", cpus, "-c", "16", "-t", long, "--idle", "200ms", "--heavy", "0,400000", "--rounds", "1")
	must.That(t, j.Quota != nil && j.Failed == 0, "%d of %d points failed, %+v", j.Failed, j.Total, j.Quota)
	switch others := busy(rec); {
	case j.Quota.Verdict == bpf.QuotaUndecided && others >= 0.15:
		t.Logf("undecided, while others used %.0f %% of the node: %s", 100*others, strings.Join(j.Quota.Because, "; "))
	case j.Quota.Verdict != bpf.QuotaShared:
		t.Errorf("%s: %s (others used %.0f %% of the node)", j.Quota.Verdict, strings.Join(j.Quota.Because, "; "), 100*others)
	case j.Quota.Rounds != 1 || j.Quota.Agree != 1 || strconv.FormatFloat(j.Quota.Limit, 'f', -1, 64) != cpus:
		t.Errorf("%+v", j.Quota)
	}
}

// busy returns the largest share of the node that others used in a phase.
func busy(rec *record.Record) (most float64) {
	for _, p := range rec.Points {
		if p.NodeCPU < 0 || p.Ended <= p.Begun {
			continue
		}
		others := p.NodeCPU - p.Own - max(p.ClientCPU, 0) - max(p.ServerCPU, 0)
		most = max(most, float64(others)/float64(p.Ended-p.Begun)/float64(p.CPUs))
	}
	return most
}
