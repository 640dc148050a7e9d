// Package bench contains the benchmarks that compare tare with another program: its
// stopwatch with a bare loop in C, its storage jobs with plain fio, its CPU usage as a
// monitor, and its log reader with grep.
//
//	go test -bench=. ./internal/testing/bench
//	go test -bench='Stopwatch|Storage' -benchtime=300x ./internal/testing/bench
//
// Every comparison is interleaved and has an A/A pair, which shows the noise of this
// machine. Benchmarks without a reference are next to the measured code, and checks of
// limits are proofs (make prove). The printed load average includes the measurement
// itself. Figures measured while others use the machine have little meaning.
package bench

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// side is one side of a comparison. once makes one measurement, in ns.
type side struct {
	name string
	once func() float64
}

// compare measures every side once per round, in random order. It reports the median of
// each side and its difference from the first side.
func compare(b *testing.B, sides ...side) {
	b.Helper()
	values := make([][]float64, len(sides))
	for b.Loop() {
		for _, i := range rand.Perm(len(sides)) {
			values[i] = append(values[i], sides[i].once())
		}
	}
	base := stat.Summarize(values[0], 0.95).Median
	load, _ := os.ReadFile("/proc/loadavg")
	b.Logf("%d rounds, load average %s", len(values[0]), load)
	for i, s := range sides {
		of := stat.Summarize(values[i], 0.95)
		b.Logf("%-32s %10.1f µs [%.1f, %.1f]  %+8.1f µs %+6.1f %%", s.name, of.Median/1e3, of.Lo/1e3, of.Hi/1e3, (of.Median-base)/1e3, 100*(of.Median/base-1))
	}
}

// middle reports the median of the measurements.
func middle(b *testing.B, unit string, values []float64) {
	b.ReportMetric(stat.Quantiles(values, 0.5)[0], unit)
}

// owned returns a run whose folders and cgroups are removed with the benchmark. It has
// its own lock, so that tare can run at the same time, and its data is on a disk.
func owned(b *testing.B) *workspace.Run {
	b.Helper()
	need.Root(b)
	data := must.Get(os.MkdirTemp("/var/tmp", "tare-bench-"))(b)
	run := must.Get(workspace.New(workspace.Roots{Data: data, State: b.TempDir()}))(b)
	b.Cleanup(func() { must.OK(b, errors.Join(run.Close(), os.RemoveAll(data))) })
	return run
}

// builtIn is the folder of the built command, "" if not built.
var builtIn string

var built = sync.OnceValues(func() (tare string, err error) {
	if builtIn, err = os.MkdirTemp("", "tare-bench-"); err != nil {
		return "", err
	}
	tare = filepath.Join(builtIn, "tare")
	return tare, exec.Command("go", "build", "-o", tare, "../../../cmd/tare").Run()
})

func TestMain(m *testing.M) {
	status := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(status)
}

// tare returns the command as released, built for the benchmark.
func tare(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	program := must.Get(built())(b)
	return exec.Command(program, args...)
}

// recorded returns the record of a tare run.
func recorded(b *testing.B, args ...string) *record.Record {
	b.Helper()
	file := filepath.Join(b.TempDir(), "record.jsonl")
	command := tare(b, append(args, "--quiet", "-o", file)...)
	out, err := command.CombinedOutput()
	must.That(b, err == nil, "%s: %v: %s", command, err, out)
	return must.Get(record.Load(file))(b)
}

// output returns the output of a command that must succeed.
func output(b *testing.B, command *exec.Cmd) []byte {
	b.Helper()
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	must.That(b, err == nil, "%s: %v: %s", command, err, said.Bytes())
	return said.Bytes()
}

// waiting sleeps.
func waiting(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

var cpus = float64(runtime.NumCPU())
