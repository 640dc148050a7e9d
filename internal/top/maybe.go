package top

import (
	"math"
	"strconv"
)

// Maybe is a figure that may not be known: null in JSON, "?" in text.
type Maybe[T int64 | float64] struct {
	V  T
	OK bool
}

func known[T int64 | float64](v T) Maybe[T] { return Maybe[T]{v, true} }

// MarshalJSON writes numbers without an exponent, and to a millionth.
func (m Maybe[T]) MarshalJSON() ([]byte, error) {
	if !m.OK {
		return []byte("null"), nil
	}
	if f := float64(m.V); f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		if n, whole := any(m.V).(int64); whole {
			return strconv.AppendInt(nil, n, 10), nil
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return []byte("null"), nil
		}
		return strconv.AppendFloat(nil, math.Round(f*1e6)/1e6, 'f', -1, 64), nil
	}
	return strconv.AppendInt(nil, int64(m.V), 10), nil
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

func (s *sum[T]) maybe() Maybe[T] {
	if s.wrong || !s.any {
		return Maybe[T]{}
	}
	return known(s.v)
}

// plus adds two figures of which either may be all there is.
func plus[T int64 | float64](a, b Maybe[T]) Maybe[T] {
	var s sum[T]
	s.add(a)
	s.add(b)
	return s.maybe()
}
