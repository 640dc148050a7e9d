// Package nodestat reads how the whole machine fares while a run goes on: its
// load, how busy its CPUs are, what a hypervisor takes from them, and how long
// tasks wait for CPU, memory and disk.
//
// A reading is taken between rounds and goes into the record, so that a figure
// that moved can be told from a machine that moved. All shares are differences
// of the kernel's own counters since the reading before, not its running
// averages: an average over ten seconds says nothing of a round that took one.
package nodestat

import (
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Reader takes readings of one machine. Its zero value reads this one; it is
// for one goroutine.
type Reader struct {
	Root  machine.Root
	Clock func() int64 // ns; CLOCK_MONOTONIC where it is nil

	previous *counters
}

// counters are all that two readings are compared by.
type counters struct {
	time     int64
	cpu      CPU
	pressure pressure
	havePSI  bool
}

// Read takes a reading. Round and phase are left to the caller.
//
// The first reading has nothing before it, and a counter that went backwards,
// as some do when a CPU is taken offline, gives no share: Known is false. A
// kernel without pressure stall information gives HavePSI false. An error
// comes with what could be read, and the next reading starts anew.
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
	c.time = r.now() // next to the pressures, which are compared with it
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
	if !before.havePSI { // nothing to compare with yet
		n.HavePSI = false
	}
	var p [3]float64
	if n.HavePSI {
		if p, ok = now.pressure.since(before.pressure, now.time-before.time); !ok {
			return
		}
	}
	n.Known = true
	n.Busy, n.Steal = busy, steal
	n.PSICPU, n.PSIMemory, n.PSIIO = p[0], p[1], p[2]
}
