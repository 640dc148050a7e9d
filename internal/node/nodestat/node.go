// Package nodestat reads the state of the whole machine during a run: load, busy and stolen
// CPU time, and pressure on CPU, memory and disk.
//
// A run reads it between rounds. The readings in the record show whether a figure changed
// with the load of the machine. All shares are differences of kernel counters between two
// readings. The kernel's averages cover ten seconds or more, which is too long for a round.
package nodestat

import (
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Reader takes readings of one machine. The zero value reads this machine. One goroutine may
// use it.
type Reader struct {
	Root  machine.Root
	Clock func() int64 // ns; CLOCK_MONOTONIC if nil

	previous *counters
}

// counters are the values of a reading that the next reading is compared with.
type counters struct {
	time     int64
	cpu      CPU
	pressure pressure
	havePSI  bool
}

// Read takes a reading. The caller sets round and phase.
//
// Known is false for the first reading, and if a counter went backwards, as some do when a
// CPU goes offline. HavePSI is false if the kernel lacks pressure stall information. With an
// error Read still fills in the readable fields, and the next reading is again a first one.
func (r *Reader) Read() (record.Node, error) {
	n := record.Node{Type: record.TypeNode}
	now, err := r.counters()
	n.Time, n.HavePSI = now.time, now.havePSI
	load, loadErr := r.Root.Load()
	n.Load1 = load
	previous := r.previous
	r.previous = nil
	if err := errors.Join(err, loadErr); err != nil {
		return n, fmt.Errorf("read the state of the machine: %w", err)
	}
	r.previous = &now
	if previous != nil {
		compare(&n, *previous, now)
	}
	return n, nil
}

func (r *Reader) counters() (counters, error) {
	var c counters
	var cpuErr, pressureErr error
	c.cpu, cpuErr = ReadCPU(r.Root)
	c.time = r.now() // read close to the pressures, which are divided by the elapsed time
	c.pressure, c.havePSI, pressureErr = readPressure(r.Root)
	return c, errors.Join(cpuErr, pressureErr)
}

func (r *Reader) now() int64 {
	if r.Clock != nil {
		return r.Clock()
	}
	return machine.Now()
}

// compare fills in the shares, all of them or none.
func compare(n *record.Node, before, now counters) {
	busy, steal, ok := now.cpu.Since(before.cpu)
	if !ok {
		return
	}
	var p [3]float64
	if n.HavePSI = n.HavePSI && before.havePSI; n.HavePSI {
		if p, ok = now.pressure.since(before.pressure, now.time-before.time); !ok {
			return
		}
	}
	n.Known = true
	n.Busy, n.Steal = busy, steal
	n.PSICPU, n.PSIMemory, n.PSIIO = p[0], p[1], p[2]
}
