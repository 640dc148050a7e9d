package bpflist

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// busy loads a program that is run all the time until the test ends.
func busy(t *testing.T) (id uint32) {
	t.Helper()
	need.Root(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "tare_t_list", Type: ebpf.SocketFilter, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	must.OK(t, err)
	i, err := p.Info()
	must.OK(t, err)
	known, _ := i.ID()
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 100})
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		p.Close()
	})
	return uint32(known)
}

// statistics tells whether this process holds a descriptor that keeps them on.
func statistics(t *testing.T) bool {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must.OK(t, err)
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(target, "bpf-stats") {
			return true
		}
	}
	return false
}

func TestAProgramThatRunsIsSeenToRun(t *testing.T) {
	id := busy(t)
	var b strings.Builder
	o := Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Interval: 2 * time.Second, Format: formatJSON} // in which it runs, whatever else the machine does
	must.OK(t, Run(t.Context(), &b, o))
	var v View
	must.OK(t, json.Unmarshal([]byte(b.String()), &v))
	if len(v.Programs) != 1 || v.Programs[0].Rate == nil {
		t.Fatalf("%+v", v)
	}
	p := v.Programs[0]
	r := p.Rate
	if p.ID != id || p.Memory <= 0 || r.Runs == 0 || r.Core <= 0 || r.Core > float64(v.CPUs) || r.Mean <= 0 {
		t.Errorf("%+v, %+v", p, r)
	}
	if v.Interval < 2 || !v.Counted {
		t.Errorf("an interval of %v s, statistics %v", v.Interval, v.Counted)
	}
	if statistics(t) {
		t.Error("statistics are still on")
	}
}

// until cancels when so many lines were written.
type until struct {
	strings.Builder
	lines  int
	cancel context.CancelFunc
}

func (u *until) Write(b []byte) (int, error) {
	n, err := u.Builder.Write(b)
	if strings.Count(u.String(), "\n") >= u.lines {
		u.cancel()
	}
	return n, err
}

func TestWatchingEndsWithItsContextAndLeavesNoStatisticsOn(t *testing.T) {
	id := busy(t)
	for _, format := range []string{formatText, formatJSON, formatCSV} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := &until{lines: 3, cancel: cancel}
			err := Run(ctx, out, Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Interval: 20 * time.Millisecond, Watch: true, Format: format})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v, want %v", err, context.Canceled)
			}
			if statistics(t) {
				t.Error("statistics are still on")
			}
			if format == formatCSV {
				rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
				if err != nil || len(rows) < 3 || rows[0][0] != "time" || rows[1][0] == "time" || rows[2][0] == "time" {
					t.Errorf("%v, %v; want one heading and rows", rows, err)
				}
			}
		})
	}
}

func TestWithoutAnIntervalStatisticsAreLeftAsTheyAre(t *testing.T) {
	id := busy(t)
	var b strings.Builder
	must.OK(t, Run(t.Context(), &b, Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Format: formatOpenMetrics}))
	if text := b.String(); !strings.HasSuffix(text, "# EOF\n") || !strings.Contains(text, `name="tare_t_list"`) {
		t.Errorf("it is %s", text)
	}
}

func TestTotalsAreWordsThatCountAndOptionsThatContradictAreRefused(t *testing.T) {
	golden.Lines(t, "testdata/words.txt", func(t *testing.T, line string) (any, error) {
		what, text, _ := strings.Cut(line, " ")
		var total Total
		var o Options
		if what == "total" {
			must.OK(t, json.Unmarshal([]byte(text), &total))
			return total.words(), nil
		}
		must.OK(t, json.Unmarshal([]byte(text), &o))
		return "listed", Run(t.Context(), &strings.Builder{}, o)
	})
}
