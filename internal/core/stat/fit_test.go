package stat

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// From the table of Student's t at 95 % and 99 %, two-sided: NIST/SEMATECH
// e-Handbook of Statistical Methods, 1.3.6.7.2.
func TestStudentTMatchesTables(t *testing.T) {
	for _, tt := range []struct {
		freedom    int
		confidence float64
		want       float64
	}{
		{1, 0.95, 12.706}, {2, 0.95, 4.303}, {3, 0.95, 3.182}, {4, 0.95, 2.776}, {5, 0.95, 2.571}, {9, 0.95, 2.262},
		{10, 0.95, 2.228}, {30, 0.95, 2.042}, {100, 0.95, 1.984}, {1, 0.99, 63.657}, {2, 0.99, 9.925}, {7, 0.99, 3.499}, {20, 0.90, 1.725},
	} {
		if got := studentT(tt.confidence, float64(tt.freedom)); math.Abs(got-tt.want) > 0.0006 {
			t.Errorf("%d degrees of freedom at %g: %.4f, want %.3f", tt.freedom, tt.confidence, got, tt.want)
		}
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		if got := studentT(bad, 3); !math.IsNaN(got) {
			t.Errorf("confidence %g gives %g", bad, got)
		}
	}
	if got := studentT(0.95, 0); !math.IsNaN(got) {
		t.Errorf("zero degrees of freedom: %g", got)
	}
}

func points(x, y []float64) (all []Point) {
	for i := range x {
		all = append(all, Point{x[i], y[i]})
	}
	return all
}

// The first set of Anscombe, Graphs in Statistical Analysis, The American Statistician 27
// (1973) 17–21: slope 0.5001, intercept 3.0001.
func TestLineMatchesThePublishedExample(t *testing.T) {
	x := []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	y := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	f := line(points(x, y))
	if math.Abs(f.Slope-0.50009) > 1e-5 || math.Abs(f.Intercept-3.00009) > 1e-5 || f.Known || f.Disagree {
		t.Errorf("%+v", f)
	}
}

func TestUnknownLines(t *testing.T) {
	if f := line(points([]float64{1, 1, 1}, []float64{1, 2, 3})); f.Known || !math.IsNaN(f.Slope) {
		t.Errorf("equal x values have a slope: %+v", f)
	}
	if f := line(points([]float64{1, 2}, []float64{1, 2})); f.Known || f.Slope != 1 {
		t.Errorf("two points: %+v", f)
	}
	if f := line(points(nil, nil)); f.Known || f.N != 0 {
		t.Errorf("no points: %+v", f)
	}
	if f := line(points([]float64{1, 2, 3, 4}, []float64{1, math.NaN(), 3, 4})); f.N != 3 || f.Slope != 1 || len(f.Warnings) == 0 {
		t.Errorf("NaN: %+v", f)
	}
	if f := line(points([]float64{1, 5, 20}, []float64{3, 7, 22})); f.Disagree || math.Abs(f.Slope-1) > 1e-12 {
		t.Errorf("exact line: %+v", f)
	}
}

func TestOneRoundHasASlopeWithoutAnInterval(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	one := points(x, []float64{1.1, 2, 2.9, 4.1, 5, 5.9})
	f := LineOfRounds([][]Point{one}, 0.95)
	if f.Known || Finite(f.SlopeLo) || Finite(f.SlopeHi) || math.Abs(f.Slope-0.97) > 0.02 || len(f.Warnings) != 1 {
		t.Errorf("%+v", f)
	}
	if f = LineOfRounds([][]Point{one, points(x, []float64{2, 3, 4, 5, 6, 7})}, 0.95); !f.Known || f.SlopeHi-f.SlopeLo < 0.2 || f.Warnings != nil {
		t.Errorf("two rounds: %+v", f)
	}
}

func TestOutlierMakesTheSlopesDisagree(t *testing.T) {
	var x, y []float64
	for i := range 20 {
		x, y = append(x, float64(i)), append(y, 3*float64(i)+0.01*float64(i%3))
	}
	wild := append([]float64(nil), y...)
	wild[19], wild[18] = 500, 400
	straight := [][]Point{points(x, y), points(x, y), points(x, y)}
	if f := LineOfRounds(straight, 0.95); f.Disagree {
		t.Errorf("the slopes of a straight line disagree: %+v", f)
	}
	if f := LineOfRounds([][]Point{points(x, wild), points(x, wild), points(x, wild)}, 0.95); !f.Disagree || math.Abs(f.Robust-3) > 0.1 {
		t.Errorf("%+v", f)
	}
}

// The rounds have different starts and slopes. The interval must contain the true slope
// with the stated confidence.
func TestIntervalsContainTheSlope(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rounds int
		least  float64
	}{{"two rounds", 2, 0.94}, {"three rounds", 3, 0.94}, {"five rounds", 5, 0.94}, {"eight rounds", 8, 0.94}, {"twenty rounds", 20, 0.94}} {
		r := rand.New(rand.NewPCG(7, uint64(tt.rounds)))
		const trials, slope = 3000, 9.0
		held, sum := 0, 0.0
		for range trials {
			var rounds [][]Point
			for range tt.rounds {
				start, own := 20*r.NormFloat64(), slope+0.5*r.NormFloat64()
				var points []Point
				for _, n := range []float64{1, 5, 20} {
					points = append(points, Point{n, 50 + start + own*n + 0.5*r.NormFloat64()})
				}
				rounds = append(rounds, points)
			}
			f := LineOfRounds(rounds, 0.95)
			if !f.Known || f.Rounds != tt.rounds {
				t.Fatalf("%+v", f)
			}
			sum += f.Slope
			if f.SlopeLo <= slope && slope <= f.SlopeHi {
				held++
			}
		}
		if share := float64(held) / trials; share < tt.least {
			t.Errorf("%s: the interval contained the slope in %.3f of the trials", tt.name, share)
		}
		if mean := sum / trials; math.Abs(mean-slope) > 0.03 {
			t.Errorf("%s: the slope is %.3f on average", tt.name, mean)
		}
	}
}

// No input may panic, hang or yield a contradictory verdict.
func FuzzStatistics(f *testing.F) {
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
			t.Errorf("refused, but got %v", mean)
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
