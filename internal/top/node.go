package top

import (
	"cmp"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
)

// machineReader reads the machine and this process.
type machineReader struct {
	fast   *nodestat.Fast
	slow   nodestat.Reader
	total  Maybe
	cpus   int
	broken error // why fast is nil

	read1, write1, own counter
}

func openNode(root machine.Root) *machineReader {
	n := &machineReader{slow: nodestat.Reader{Root: root}}
	n.fast, n.broken = nodestat.OpenFast(root)
	if m, err := root.Memory(); err == nil {
		n.total = known(m.Total)
	}
	n.cpus, _ = root.CPUs()
	return n
}

func (n *machineReader) read(v *view, at time.Time) {
	v.Node.CPUs, v.Node.Total = n.cpus, n.total
	var t nodestat.Tick
	fastErr := n.fast.Read(&t)
	have := func(x int64) Maybe { return Maybe{float64(x), x >= 0} }
	v.Node.Used, v.Node.Available, v.Node.Cache = have(t.Used), have(t.Available), have(t.Cache)
	v.Node.Load1 = Maybe{float64(t.Load1000) / 1000, t.Load1000 >= 0}
	v.Node.Read, v.Node.Write = n.read1.perSecond(t.Read, at), n.write1.perSecond(t.Write, at)
	state, slowErr := n.slow.Read()
	if slowErr == nil && state.Known {
		v.Node.CPU, v.Node.Steal = known(state.Busy*float64(n.cpus)), known(state.Steal*float64(n.cpus))
		if state.HavePSI {
			v.Node.PSICPU, v.Node.PSIMemory, v.Node.PSIIO = known(state.PSICPU), known(state.PSIMemory), known(state.PSIIO)
		}
	}
	if err := cmp.Or(slowErr, fastErr, n.broken); err != nil {
		v.Problems.Broken++
		v.Problems.Note(err.Error())
	}
	n.own.next(procs.OwnCPU(), at)
	v.Own.CPU = n.own.cpus()
	if self, err := procs.StatOf(os.Getpid()); err == nil {
		v.Own.Memory = known(self.Resident)
	}
}

// perSecond adds a reading and returns the rate. A negative reading is missing.
func (c *counter) perSecond(v int64, at time.Time) Maybe {
	if v < 0 {
		c.lost()
		return Maybe{}
	}
	c.next(v, at)
	return c.rate
}
