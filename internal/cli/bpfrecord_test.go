package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// whole checks that a document is complete and valid in its format.
var whole = map[string]func(text string) bool{
	"text": func(s string) bool { return strings.Contains(s, "findings") },
	"md":   func(s string) bool { return strings.Contains(s, "| ---") || strings.Contains(s, "|---") },
	"csv": func(s string) bool {
		rows, err := csv.NewReader(strings.NewReader(s)).ReadAll()
		return err == nil && len(rows) > 1
	},
	"json":        func(s string) bool { return json.Valid([]byte(s)) },
	"openmetrics": func(s string) bool { return strings.HasSuffix(s, "# EOF\n") },
}

func TestProgramListIsCompleteInEveryFormat(t *testing.T) {
	need.Root(t)
	place(t)
	for _, format := range []string{"text", "json", "openmetrics"} {
		for _, interval := range []string{"0", "50ms"} {
			code, out, stderr := tare(t, "bpf", "list", "--name", "no_such_program", "--format", format, "--interval", interval)
			// A table without programs has only its heading.
			if ok := whole[format](out) || format == "text" && out != ""; code != ExitUsage || !ok || !strings.Contains(stderr, "no such program") {
				t.Errorf("%s over %s: exit %d\n%s\n%s", format, interval, code, out, stderr)
			}
		}
	}
}

// clientsOf returns the load clients and servers of the program in dir.
func clientsOf(dir string) (found []string) {
	for _, pid := range procs.All() {
		if path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); strings.HasPrefix(path, dir+"/") {
			if text := strings.Join(procs.ArgsOf(pid), " "); strings.Contains(text, " -load-") {
				found = append(found, fmt.Sprintf("%d %s", pid, text))
			}
		}
	}
	return found
}

// withClients returns a function that reports whether n clients are running.
func withClients(n int) func(dir string) bool {
	return func(dir string) bool { return strings.Count(strings.Join(clientsOf(dir), "\n"), "-load-client") == n }
}

// points returns the number of points of a phase in r.jsonl so far.
func points(phase string) int {
	b, _ := os.ReadFile("r.jsonl")
	return strings.Count(string(b), fmt.Sprintf(`"phase":%q`, phase))
}

// counting reports whether the program in a folder keeps BPF statistics enabled.
func counting(dir string) bool {
	for _, pid := range procs.All() {
		if path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); !strings.HasPrefix(path, dir+"/") {
			continue
		}
		held, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range held {
			if what, _ := os.Readlink(fd); what == "anon_inode:bpf-stats" {
				return true
			}
		}
	}
	return false
}

func TestSignalDuringLoadSavesAndCleansUp(t *testing.T) {
	need.Root(t)
	for name, c := range map[string]struct {
		args   []string
		moment func(dir string) bool
		points int // minimum number of saved points
	}{
		"before the load":                  {[]string{"load", "--datapath", "reference", "-c", "4", "--idle", "60s", "-t", "100ms", "--seed", "1"}, counting, 0},
		"while it is loaded":               {[]string{"load", "--datapath", "reference", "-c", "4", "--idle", "100ms", "-t", "60s"}, withClients(1), 0},
		"while four clients share a limit": {[]string{"quota", "-c", "4", "--idle", "100ms", "-t", "60s", "--cpus", "4x50m", "--heavy", "100000"}, withClients(4), 0},
		"between two points": {[]string{"load", "--datapath", "reference", "-c", "1,2,3,4,5,6,7,8", "--idle", "100ms", "-t", "100ms", "--rounds", "100"},
			func(string) bool { return points(record.PhaseCool) > 1 }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			cmd, stdout, stderr := started(t, dir, append(append([]string{"bpf"}, c.args...), "-o", "r.jsonl")...)
			await(t, "the moment", func() bool { return c.moment(dir) })
			rec := interrupted(t, unix.SIGINT, cmd, stdout, stderr)
			if rec.End.Failures > 0 || len(rec.Points) < c.points {
				t.Errorf("the record's end: %+v, %d points", rec.End, len(rec.Points))
			}
			for _, p := range rec.Points {
				if p.Failure != nil || p.Ended <= p.Begun {
					t.Errorf("an incomplete phase was saved: %+v", p)
				}
			}
			nothingOf(t, rec)
			nobodyIn(t, dir)
		})
	}
}

// nobodyIn checks that a run has left no process.
func nobodyIn(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if left = clientsOf(dir); len(left) == 0 {
			return
		}
	}
	t.Errorf("still running: %q", left)
}

// Programs, clients and servers exit with tare, even if it is killed. tare clean finds
// the folders and cgroups.
func TestLeftoversOfKilledLoadAreFoundAndRemoved(t *testing.T) {
	need.Root(t)
	dir := place(t)
	cmd, _, _ := started(t, dir, "bpf", "quota", "-c", "4", "--idle", "100ms", "-t", "60s", "--cpus", "2x100m", "-q", "-o", "r.jsonl")
	await(t, "its clients", func() bool { return withClients(2)(dir) })
	rec, code, out := killed(t, cmd)
	if code == ExitUsage {
		t.Errorf("report: exit %d\n%s", code, out)
	}
	nothingOf(t, rec)
	nobodyIn(t, dir)
	if counting(dir) {
		t.Error("statistics are still enabled")
	}
	removed(t, rec.Header.RunID, "cgroup ")
}

// The reference datapath has a service for an external server. The request has the
// server's own name. Each connection is one run of the lookup.
func TestExternalServerIsReachedThroughReferenceDatapath(t *testing.T) {
	need.Root(t)
	var asked atomic.Value
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		asked.Store(r.Host + r.URL.RequestURI())
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, verb := range []string{"load", "memory"} {
		t.Run(verb, func(t *testing.T) {
			place(t)
			requests.Store(0)
			args := append([]string{"bpf", verb, "--datapath", "reference", "--url", "http://localhost:" + port + "/a?b=c"}, quick...)
			ends(t, ExitDone, "", args...)
			if got := asked.Load(); got != "localhost:"+port+"/a?b=c" {
				t.Errorf("the server received %v", got)
			}
			sent := int64(0)
			for _, p := range loaded(t).Points {
				if p.Sent == nil {
					continue
				}
				sent += p.Sent.Requests
				for _, r := range p.Runs {
					// Check only points that enable statistics. Other points have counts
					// only if another process enables statistics.
					if r.Name == "tare_connect4" && p.Asked.Statistics && r.Count != p.Sent.Sockets {
						t.Errorf("%d runs of the lookup, %d connections", r.Count, p.Sent.Sockets)
					}
				}
			}
			if sent == 0 || sent != requests.Load() {
				t.Errorf("%d requests were sent, the server had %d", sent, requests.Load())
			}
		})
	}
}

func TestBPFHasNoExplainRoles(t *testing.T) {
	for _, verb := range []string{"load", "quota", "memory"} {
		if _, out, _ := tare(t, "bpf", verb, "--help"); !strings.Contains(out, "--details") || !strings.Contains(out, "for one request") {
			t.Errorf("%s offers it:\n%s", verb, out)
		}
	}
}

func TestMissingProgramsFailTheRun(t *testing.T) {
	need.Root(t)
	place(t)
	code, out, _ := tare(t, append([]string{"bpf", "load", "--name", "tare_no_such", "--url", "http://127.0.0.1:1/"}, quick...)...)
	if code != ExitUsage || !strings.Contains(strings.Join(strings.Fields(out), " "), "no program is loaded that was chosen") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if f := loaded(t).Findings; codeOf(0, f) == ExitDone {
		t.Errorf("findings %+v", f)
	}
}
