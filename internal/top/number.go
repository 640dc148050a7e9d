package top

import (
	"math"
	"strconv"
	"time"
)

// Maybe is a figure that may not be known: null in JSON, "?" in text.
type Maybe[T int64 | float64] struct {
	V  T
	OK bool
}

func known[T int64 | float64](v T) Maybe[T] { return Maybe[T]{v, true} }

// MarshalJSON writes numbers without an exponent, and to a millionth.
func (m Maybe[T]) MarshalJSON() ([]byte, error) {
	if n, whole := any(m.V).(int64); whole && m.OK {
		return strconv.AppendInt(nil, n, 10), nil
	}
	f := float64(m.V)
	if !m.OK || math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1e6)/1e6, 'f', -1, 64), nil
}

// sum adds up what is known of several parts. A part that is wrong, since its
// counter went back or its pid is another's now, leaves the whole unknown; one
// that is only new counts from when it was first seen.
type sum[T int64 | float64] struct {
	v     T
	any   bool
	wrong bool
}

func (s *sum[T]) add(m Maybe[T]) {
	if m.OK {
		s.v += m.V
		s.any = true
	}
}

// count adds a counter's rate.
func (s *sum[T]) count(c *counter, per T) {
	s.add(Maybe[T]{T(c.rate.V) / per, c.rate.OK})
	s.wrong = s.wrong || c.wrong
}

func (s *sum[T]) maybe() Maybe[T] {
	if s.wrong || !s.any {
		return Maybe[T]{}
	}
	return known(s.v)
}

// orNone is the sum, or 0 where there was nothing to be added up and the whole that it
// is a part of is known.
func (s *sum[T]) orNone(whole Maybe[T]) Maybe[T] {
	if !s.any && !s.wrong && whole.OK {
		return known(T(0))
	}
	return s.maybe()
}

// plus adds two figures of which either may be all there is.
func plus[T int64 | float64](a, b Maybe[T]) Maybe[T] {
	var s sum[T]
	s.add(a)
	s.add(b)
	return s.maybe()
}

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
		delta, ok := v-c.last, v >= c.last && c.last >= 0
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

// unknown stands for what cannot be said.
const unknown = "?"

// size writes bytes, or bytes per second, in at most six characters: 0, 712, 9.8K,
// 371.2M, 1.9G. Units are powers of 1024.
func size[T int64 | float64](m Maybe[T]) string {
	v := float64(m.V)
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
func percent(m Maybe[float64]) string {
	v := m.V * 100
	switch {
	case !m.OK:
		return unknown
	case v < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
