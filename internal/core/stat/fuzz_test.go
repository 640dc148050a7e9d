package stat

import (
	"encoding/binary"
	"math"
	"testing"
)

// No input may panic, hang, or come back as a verdict that contradicts itself.
func FuzzAnyBytesAreSurvived(f *testing.F) {
	f.Add([]byte{}, 0.95)
	f.Add(bytesOf(math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1), math.NaN())
	f.Add(bytesOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), 1.0)
	f.Add(bytesOf(math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1), 1, 1, 1, 1, 1, 1, 1), -1.0)
	f.Add(bytesOf(7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7), 0.5)
	f.Fuzz(func(t *testing.T, data []byte, number float64) {
		if len(data) > 8*200 {
			data = data[:8*200]
		}
		var values []float64
		old, new := Rounds{}, Rounds{}
		for i := 0; i+8 <= len(data); i += 8 {
			v := math.Float64frombits(binary.LittleEndian.Uint64(data[i:]))
			values = append(values, v)
			if side := i / 8; side%2 == 0 {
				old[side/2] = v
			} else {
				new[side/2] = v
			}
		}

		for _, s := range []Summary{Summarize(values, number), SummarizeRounds(values, number)} {
			if s.Known && !(s.Lo <= s.Median && s.Median <= s.Hi) || s.Known && s.N < MinRounds(number) {
				t.Errorf("%+v of %v at %v", s, values, number)
			}
			if p := s.Precision(); p < 0 || math.IsNaN(p) {
				t.Errorf("precision %v of %+v", p, s)
			}
		}
		for _, c := range CompareAll([]Sides{{Old: old, New: new}, {Old: new, New: old, PerRun: 3}}, number, Holm) {
			if c.Why == "" || !(c.P >= 0 && c.P <= c.Adjusted && c.Adjusted <= 1) || (c.Verdict == Different) != (c.Adjusted < Alpha) || c.Lo > c.Hi {
				t.Errorf("%+v of %v and %v", c, old, new)
			}
		}
		if c := SteadinessOf([]Rounds{old, new}, 3); !(c.First.P >= 0 && c.First.P <= 1 && c.Half.P >= 0 && c.Half.P <= 1) {
			t.Errorf("%+v of %v and %v", c, old, new)
		}
		if m := Bimodal(values, 1); m.Bimodal && !(m.Low < m.High) {
			t.Errorf("%+v of %v", m, values)
		}
		if mean, ok := Trimmed(values); !ok && !math.IsNaN(mean) {
			t.Errorf("refused, yet %v", mean)
		}
		Quantile(values, number)
		Quantiles(values, number, 0.5)
		Parallelism(values, number)
		MinRounds(number)
		for _, v := range values {
			FormatVersus(v, number)
			FormatVersus(number, v)
		}
	})
}

func bytesOf(values ...float64) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}
