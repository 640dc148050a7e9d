package top

import (
	"math"
	"strconv"
	"time"
)

// Maybe is a figure that may be unknown: null in JSON, "?" in text.
type Maybe struct {
	V  float64
	OK bool
}

func known[T int64 | float64](v T) Maybe { return Maybe{float64(v), true} }

// MarshalJSON formats numbers without an exponent and rounds to a millionth.
func (m Maybe) MarshalJSON() ([]byte, error) {
	v := m.V
	switch {
	case !m.OK || math.IsNaN(v) || math.IsInf(v, 0):
		return []byte("null"), nil
	case v != math.Trunc(v): // bytes stay exact
		v = math.Round(v*1e6) / 1e6
	}
	return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
}

// sum is the sum of the known parts. It is unknown if a part's counter decreased or its
// pid was reused. A new part counts from its first reading.
type sum struct {
	v     float64
	any   bool
	wrong bool
}

func (s *sum) add(m Maybe) {
	if m.OK {
		s.v += m.V
		s.any = true
	}
}

// need adds a part. An unknown part makes the sum unknown.
func (s *sum) need(m Maybe) {
	s.add(m)
	s.wrong = s.wrong || !m.OK
}

// count adds a counter's rate.
func (s *sum) count(c *counter, per float64) {
	s.add(Maybe{c.rate.V / per, c.rate.OK})
	s.wrong = s.wrong || c.wrong
}

func (s *sum) maybe() Maybe {
	if s.wrong || !s.any {
		return Maybe{}
	}
	return known(s.v)
}

// orNone returns the sum, or 0 if it has no parts and the whole is known.
func (s *sum) orNone(whole Maybe) Maybe {
	if !s.any && !s.wrong && whole.OK {
		return known(0.0)
	}
	return s.maybe()
}

// plus adds two figures and ignores an unknown one.
func plus(a, b Maybe) Maybe {
	var s sum
	s.add(a)
	s.add(b)
	return s.maybe()
}

// counter is the rate of a monotonic counter.
type counter struct {
	last  int64
	at    time.Time
	have  bool
	rate  Maybe // per second
	wrong bool  // it decreased, or belongs to a different process
}

// next adds a reading and reports whether the counter decreased.
func (c *counter) next(v int64, at time.Time) (back bool) {
	if c.have {
		delta, ok := v-c.last, v >= c.last && c.last >= 0
		c.wrong, c.rate = !ok, Maybe{}
		if passed := at.Sub(c.at).Seconds(); ok && passed > 0 {
			c.rate = known(float64(delta) / passed)
		}
		back = !ok
	}
	c.last, c.at, c.have = v, at, true
	return back
}

// lost marks a missing reading. The next rate is unknown too, because its interval is longer.
func (c *counter) lost() { *c = counter{} }

// cpus converts a rate of ns to CPUs.
func (c *counter) cpus() Maybe {
	return Maybe{c.rate.V / 1e9, c.rate.OK}
}

const unknown = "?"

// size formats bytes, or bytes per second, in at most six characters: 0, 712, 9.8K, 371.2M,
// 1.9G. Units are powers of 1024.
func size(m Maybe) string {
	v := m.V
	switch {
	case !m.OK:
		return unknown
	case v < 1023.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, unit := range "KMGTP" {
		v /= 1024
		switch {
		case v < 999.95:
			return strconv.FormatFloat(v, 'f', 1, 64) + string(unit)
		case v < 1023.5:
			return strconv.FormatFloat(v, 'f', 0, 64) + string(unit)
		}
	}
	return strconv.FormatFloat(v/1024, 'f', 1, 64) + "E"
}

// percent formats a share as "12.3", and CPUs as percent of one CPU.
func percent(m Maybe) string {
	v := m.V * 100
	switch {
	case !m.OK:
		return unknown
	case v < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
