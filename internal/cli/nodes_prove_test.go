//go:build prove

package cli

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/thousand"
)

// These limits apply to a report over 1000 nodes with 10 000 samples each, on two CPUs.
const (
	mostTime   = 20 * time.Second
	mostMemory = 512 << 10 // KiB
)

// measured runs tare as a separate process on two CPUs, and returns its time and memory.
func measured(t *testing.T, args ...string) (out string, took time.Duration, memory int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "TARE_TEST_AS_MAIN=1", "GOMAXPROCS=2")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	began := time.Now()
	text, err := cmd.Output()
	took = time.Since(began)
	if err != nil {
		t.Fatalf("tare %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	t.Logf("tare %.60q: %v, of CPU %v, %d MiB", args, took.Round(time.Millisecond), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Millisecond), memory>>10)
	return string(text), took, memory
}

func TestThousandNodesAreReportedWithinLimits(t *testing.T) {
	fleet := thousand.Fleet{Nodes: 1000, Lanes: []int{1, 104}, Rounds: 12, Name: "a"}
	if n := fleet.Samples(); n < 10_000 {
		t.Fatalf("%d samples", n)
	}
	dir, _ := fleetOf(t, fleet)
	out, took, memory := measured(t, "report", dir)
	if took > mostTime || memory > mostMemory {
		t.Errorf("it took %v and %d MiB", took, memory>>10)
	}
	check.Contains(t, "out", out, "outliers: 5 of 1000 nodes")
	for node := range fleet.Unlike() {
		check.Contains(t, "is not named", out, node)
	}
	fleet.Name, fleet.Slower = "b", 1.1
	other, _ := fleetOf(t, fleet)
	if out, took, memory = measured(t, "compare", "old="+dir, "new="+other, "--unlike"); took > 2*mostTime || memory > mostMemory || !strings.Contains(out, "1000 runs") {
		t.Errorf("two of them took %v and %d MiB\n%.1000s", took, memory>>10, out)
	}
	for _, format := range []string{"html", "parquet", "json"} {
		measured(t, "report", dir, "--over", "node", "--format", format)
	}
}

func TestThousandRecordsAreServed(t *testing.T) {
	dir, _ := fleetOf(t, thousand.Fleet{Nodes: 1000, Lanes: []int{1, 104}, Rounds: 12})
	read, write := io.Pipe()
	go func() { Execute(t.Context(), []string{"serve", dir}, Streams{Out: write, Err: t.Output()}) }()
	at := make([]byte, 200)
	n := must.Get(read.Read(at))(t)
	jar, _ := cookiejar.New(nil) // never fails
	client, base := &http.Client{Jar: jar}, strings.TrimSpace(string(at[:n]))
	get := func(url, want string) {
		t.Helper()
		began := time.Now()
		answer := must.Get(client.Get(url))(t) //nolint:bodyclose // closed below
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%.1000s", url, err, text)
		}
		t.Logf("%s after %v", strings.TrimPrefix(url, base[:strings.Index(base, "?")]), time.Since(began).Round(time.Millisecond))
	}
	root := base[:strings.Index(base, "?")]
	get(base, "1000 files")
	get(root, "older ones")
	get(root+"?q=node-0007", "1 shown")
	get(root+"nodes?q=", "outliers: 5 of 1000 nodes")
}
