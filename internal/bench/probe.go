package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
)

// probe tells how heavy the workload is and how soon it runs.
func (b *bench) probe() error {
	pool, err := lane.NewPool(lane.Options{Lanes: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	var first []float64
	resident := 0
	for i := range 200 {
		token := fmt.Sprint("probe-", i)
		r, err := pool.Do(b.ctx, 0, lane.Order{Kind: lane.Spawn, Args: []string{filepath.Join(b.dir, probe.Name), token},
			Need: lane.NeedReady, Token: token, Timeout: 10 * time.Second})
		if err != nil || r.Err != nil {
			return fmt.Errorf("probe: %w", errors.Join(err, r.Err))
		}
		ns, ok := r.ProbeTime(token)
		if !ok {
			return fmt.Errorf("probe: no report in %q", r.Stdout)
		}
		// From before the fork: exec lies between, so this bounds it from above.
		first = append(first, float64(ns-r.Start))
		if resident, err = rss(r.Pid); err != nil {
			return err
		}
		if _, err := pool.Do(b.ctx, 0, lane.Order{Kind: lane.Kill, Watch: r.Pid, Need: lane.NeedExit, Timeout: 10 * time.Second}); err != nil {
			return err
		}
	}
	q := stat.Quantiles(first, 0.5, 0.99)
	fmt.Printf("probe: %d bytes on disk, %d KiB resident (bound: 400 KiB); first instruction after fork and exec: median %s, p99 %s (bound: 1 ms)\n",
		len(probe.Program()), resident, micro(q[0]), micro(q[1]))
	return nil
}

// rss is the resident size of a process in KiB.
func rss(pid int) (int, error) {
	d, err := new(procs.Reader).Open(pid)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	m, err := d.Memory()
	return int(m.RSS >> 10), err
}

func cpus() int { return runtime.NumCPU() }
