package lane

import (
	"context"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/must"
)

// BenchmarkOutsideTheWindow reports the time of an operation outside the measured window.
// That is the time before the lane starts and the time after the command ends.
func BenchmarkOutsideTheWindow(b *testing.B) {
	defer Settle()()
	p := must.Get(NewPool(Options{Lanes: 1}))(b)
	defer p.Close()
	dir := b.TempDir()
	must.OK(b, probe.Install(dir))
	orders := []Order{{Kind: Exec, Args: []string{dir + probe.Name, "--exit", "x"}, Timeout: time.Second}}
	lanes := []int{0}
	var window, before, after int64
	for b.Loop() {
		begin := machine.Now()
		batch := must.Get(p.Prepare(lanes, orders))(b)
		_, r, err := batch.Start(context.Background())
		if err != nil || r[0].Err != nil {
			b.Fatal(err, r[0].Err)
		}
		before += r[0].Start - begin
		window += r[0].Returned - r[0].Start
		after += machine.Now() - r[0].Returned
	}
	n := float64(b.N)
	b.ReportMetric(float64(before)/n, "before-ns/op")
	b.ReportMetric(float64(window)/n, "window-ns/op")
	b.ReportMetric(float64(after)/n, "after-ns/op")
}
