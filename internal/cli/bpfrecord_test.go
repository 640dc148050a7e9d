package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// whole are checks that a text is of its format, from its first sign to its last.
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

func TestAListOfProgramsIsWholeInEveryFormat(t *testing.T) {
	needRoot(t)
	place(t)
	for _, format := range []string{"text", "json", "csv", "openmetrics"} {
		for _, interval := range []string{"0", "50ms"} {
			code, out, stderr := tare(t, "bpf", "list", "--name", "no_such_program", "--format", format, "--interval", interval)
			// A table without programs has its heading only.
			if ok := whole[format](out) || format == "csv" && strings.HasPrefix(out, "time,") || format == "text" && out != ""; code != ExitUsage || !ok || !strings.Contains(stderr, "no such program") {
				t.Errorf("%s over %s: exit %d\n%s\n%s", format, interval, code, out, stderr)
			}
		}
	}
}

// clientsOf lists the clients and servers of a load whose program is in a folder.
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

// withClients tells whether so many clients are there: a load is about to begin or
// has begun.
func withClients(n int) func(dir string) bool {
	return func(dir string) bool { return strings.Count(strings.Join(clientsOf(dir), "\n"), "-load-client") == n }
}

// points counts the points that r.jsonl holds by now, of a phase.
func points(phase string) int {
	b, _ := os.ReadFile("r.jsonl")
	return strings.Count(string(b), fmt.Sprintf(`"phase":%q`, phase))
}

// counting tells whether the program in a folder holds the kernel's statistics on.
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

func TestASignalAtAnyMomentOfALoadSavesAndCleans(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct {
		args   []string
		moment func(dir string) bool
		points int // that are saved at least
	}{
		"before the load":                  {[]string{"load", "-c", "4", "--idle", "60s", "-t", "100ms", "--seed", "1"}, counting, 0},
		"while it is loaded":               {[]string{"load", "-c", "4", "--idle", "100ms", "-t", "60s"}, withClients(1), 0},
		"while four clients share a limit": {[]string{"quota", "-c", "4", "--idle", "100ms", "-t", "60s", "--cpus", "4x50m", "--heavy", "100000"}, withClients(4), 0},
		"between two points": {[]string{"load", "-c", "1,2,3,4,5,6,7,8", "--idle", "100ms", "-t", "100ms", "--rounds", "100"},
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
					t.Errorf("a phase that was not measured to its end is saved: %+v", p)
				}
			}
			nothingOf(t, rec)
			nobodyIn(t, dir)
		})
	}
}

// nobodyIn looks whether processes of a killed or ended run are gone.
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

// Programs, clients and servers end with tare, however that ends; the folders and
// cgroups are found.
func TestWhatAKilledLoadLeftIsFoundAndRemoved(t *testing.T) {
	needRoot(t)
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
		t.Error("statistics are held on")
	}
	removed(t, rec.Header.RunID, "cgroup ")
}
