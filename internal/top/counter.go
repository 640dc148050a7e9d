package top

import (
	"time"

	"github.com/tare-bench/tare/internal/node/cgroupstat"
)

// counter makes a rate out of a counter that only grows.
type counter struct {
	last  int64
	at    time.Time
	have  bool
	rate  Maybe[float64] // per second
	wrong bool           // it went back, or is another process's than before
}

// next takes a reading, and tells whether the counter went back.
func (c *counter) next(v int64, at time.Time) (back bool) {
	if c.have {
		delta, ok := cgroupstat.Since(c.last, v)
		c.wrong, c.rate = !ok, Maybe[float64]{}
		if passed := at.Sub(c.at).Seconds(); ok && passed > 0 {
			c.rate = known(float64(delta) / passed)
		}
		back = !ok
	}
	c.last, c.at, c.have = v, at, true
	return back
}

// lost says that there is no reading: the next rate would be over more than one
// interval, and is left out too.
func (c *counter) lost() { *c = counter{} }

// cpus is a rate of ns as CPUs.
func (c *counter) cpus() Maybe[float64] {
	return Maybe[float64]{c.rate.V / 1e9, c.rate.OK}
}

// into adds the rate to a sum.
func (c *counter) into(s *sum[float64]) {
	s.add(c.cpus())
	s.wrong = s.wrong || c.wrong
}
