package top

import (
	"math"
	"strconv"
	"time"
)

// Maybe is a figure that may not be known: null in JSON, "?" in text.
type Maybe struct {
	V  float64
	OK bool
}

func known[T int64 | float64](v T) Maybe { return Maybe{float64(v), true} }

// MarshalJSON writes numbers without an exponent, and to a millionth.
func (m Maybe) MarshalJSON() ([]byte, error) {
	v := m.V
	switch {
	case !m.OK || math.IsNaN(v) || math.IsInf(v, 0):
		return []byte("null"), nil
	case v != math.Trunc(v): // bytes are whole, and as many as they are
		v = math.Round(v*1e6) / 1e6
	}
	return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
}

// sum adds up what is known of several parts. A part that is wrong, since its
// counter went back or its pid is another's now, leaves the whole unknown; one
// that is only new counts from when it was first seen.
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

// need adds what the whole is unknown without.
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

// orNone is the sum, or 0 where there was nothing to be added up and the whole that it
// is a part of is known.
func (s *sum) orNone(whole Maybe) Maybe {
	if !s.any && !s.wrong && whole.OK {
		return known(0.0)
	}
	return s.maybe()
}

// plus adds two figures of which either may be all there is.
func plus(a, b Maybe) Maybe {
	var s sum
	s.add(a)
	s.add(b)
	return s.maybe()
}

// counter makes a rate out of a counter that only grows.
type counter struct {
	last  int64
	at    time.Time
	have  bool
	rate  Maybe // per second
	wrong bool  // it went back, or is another process's than before
}

// next takes a reading, and tells whether the counter went back.
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

// lost says that there is no reading: the next rate would be over more than one
// interval, and is left out too.
func (c *counter) lost() { *c = counter{} }

// cpus is a rate of ns as CPUs.
func (c *counter) cpus() Maybe {
	return Maybe{c.rate.V / 1e9, c.rate.OK}
}

// unknown stands for what cannot be said.
const unknown = "?"

// size writes bytes, or bytes per second, in at most six characters: 0, 712, 9.8K,
// 371.2M, 1.9G. Units are powers of 1024.
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

// percent writes a share of one as "12.3", CPUs as percent of one of them.
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
