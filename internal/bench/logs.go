package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/instrument/startup/starts"
	"github.com/tare-bench/tare/record"
)

// What is asked of reading logs.
const (
	logSpeed  = 200 << 20 // bytes per second of one core
	logShort  = 10 << 20
	logLong   = 2 << 30
	logGrowth = 16 << 20 // that the long one may need beyond the short one
)

// logs reads the debug log of a Kata pod over and over: how fast, and in how much
// memory.
func (b *bench) logs() error {
	text, err := os.ReadFile("internal/instrument/startup/logs/testdata/cripod.kata.log")
	if err != nil {
		return fmt.Errorf("%w; run it from the project's folder, as make bench does", err)
	}
	fmt.Println("logs: the debug log of a Kata pod, again and again")
	var peak [2]uint64
	var speed float64
	for i, size := range []int64{logShort, logLong} {
		seconds, most, starts, err := readLogs(b.ctx, text, size)
		if err != nil {
			return err
		}
		peak[i], speed = most, float64(size)/seconds
		fmt.Printf("  %5d MiB: %6.1f MB/s of one core's CPU time, %d starts, heap at most %.1f MiB\n", size>>20, speed/1e6, starts, float64(most)/(1<<20))
	}
	fmt.Printf("  (bounds: %d MB/s, and not more than %d MiB on top)\n\n", logSpeed>>20, logGrowth>>20)
	switch {
	case speed < logSpeed:
		return fmt.Errorf("%.0f MB/s are read, not %d", speed/1e6, logSpeed>>20)
	case peak[1] > peak[0]+logGrowth:
		return fmt.Errorf("memory grows from %d to %d bytes", peak[0], peak[1])
	}
	return nil
}

// readLogs does all that tare startup --log does but for writing the record.
func readLogs(ctx context.Context, text []byte, size int64) (seconds float64, peak uint64, found int, err error) {
	p, err := json.Marshal(startup.Defaults())
	if err != nil {
		return 0, 0, 0, err
	}
	judged, err := startup.NewJudging(&record.Header{Experiment: "startup", Plan: p}, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	builder := starts.New(starts.Options{Names: []string{"log"}}, func(s *record.Start) error {
		found++
		judged.Add(s)
		return nil
	})
	runtime.GC()
	count := 0
	watch := func(e *logs.Event) error {
		if count++; count%(1<<12) == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
		return builder.Add(e)
	}
	begin := processCPU() // the garbage collector's too
	_, err = logs.Read(ctx, []logs.Source{{Name: "log", Reader: io.LimitReader(&again{text: text}, size)}}, watch)
	if err == nil {
		err = builder.Close()
	}
	judged.Done(&record.Record{End: &record.End{}})
	return float64(processCPU()-begin) / 1e9, peak, found, err
}

// again gives a text for ever.
type again struct {
	text []byte
	rest bytes.Reader
}

func (a *again) Read(p []byte) (int, error) {
	if a.rest.Len() == 0 {
		a.rest.Reset(a.text)
	}
	return a.rest.Read(p)
}
