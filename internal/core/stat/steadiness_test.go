package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// quiet lists noise models of a machine that does not change from round to round.
var quiet = []struct {
	name     string
	draw     func(r *rand.Rand, n int) []float64
	findable bool // a first round that is 1.5 times slower is detectable
}{
	{"lognormal, 10 %", scattered(0.1), true},
	{"lognormal, 30 %", scattered(0.3), false},
	{"autocorrelation 0.3, 10 %", remembering(0.3, 0.1), true},
	{"one outlier in 20, 3 times", outlying(0.05), true},
	{"rounded to 5 %", rounded(0.05), true},
}

// warned is the set of warnings on a record's rows.
type warned struct{ first, drift, heaps bool }

func (w warned) any() bool { return w.first || w.drift || w.heaps }

// warnings checks a record like reports do: all rows, the rows of each target, and each
// row.
func warnings(targets [][]Rounds, n int) (w warned) {
	all := slices.Concat(targets...)
	for _, rows := range append([][]Rounds{all}, targets...) {
		c := SteadinessOf(rows, 1+len(targets))
		w.first, w.drift = w.first || c.First.Found, w.drift || c.Half.Found
	}
	for _, row := range all {
		w.heaps = w.heaps || Bimodal(values(row, n), len(all)).Bimodal
	}
	return w
}

// drawn draws rows of five operations for each target.
func drawn(r *rand.Rand, targets, n int, draw func(r *rand.Rand, n int) []float64) [][]Rounds {
	out := make([][]Rounds, targets)
	for t := range out {
		for range 5 {
			row := Rounds{}
			for i, v := range draw(r, n) {
				row[i] = v
			}
			out[t] = append(out[t], row)
		}
	}
	return out
}

// falseWarnings counts quiet records with any warning. It also counts detected records in
// which the first round of every row is 1.5 times slower.
func falseWarnings(r *rand.Rand, targets, n, records int, draw func(r *rand.Rand, n int) []float64) (first, drift, heaps, any, planted int) {
	for range records {
		rows := drawn(r, targets, n, draw)
		w := warnings(rows, n)
		first, drift, heaps, any = first+count(w.first), drift+count(w.drift), heaps+count(w.heaps), any+count(w.any())
		for _, row := range slices.Concat(rows...) {
			row[0] *= 1.5
		}
		planted += count(warnings(rows, n).first)
	}
	return first, drift, heaps, any, planted
}

// A smaller version of the simulation with the build tag prove; the seed is fixed.
func TestQuietRecordsRarelyHaveAWarning(t *testing.T) {
	t.Parallel()
	const records = 100
	for _, q := range quiet {
		for _, targets := range []int{2, 8} {
			if _, _, _, any, planted := falseWarnings(seeded(4), targets, 12, records, q.draw); any > records/20 || q.findable && planted < records*95/100 {
				t.Errorf("%s, %d targets: of %d records %d have a false warning, of %d slow first rounds %d are found", q.name, targets, records, any, records, planted)
			}
		}
	}
}

// row returns rounds with the given values.
func row(values ...float64) Rounds {
	out := Rounds{}
	for i, v := range values {
		out[i] = v
	}
	return out
}

func TestSteadiness(t *testing.T) {
	t.Parallel()
	stepped := func(n int, from, to float64) Rounds {
		out := Rounds{}
		for i := range n {
			out[i] = from + 0.01*float64(i%5)
			if i >= n/2 {
				out[i] += to - from
			}
		}
		return out
	}
	from := func(first float64, n int, others ...float64) Rounds {
		out := Rounds{0: first}
		for i := 1; i < n; i++ {
			out[i] = others[i%len(others)]
		}
		return out
	}
	without := func(rows Rounds, round int) Rounds {
		delete(rows, round)
		return rows
	}
	for _, tt := range []struct {
		name  string
		rows  []Rounds
		first float64 // detected ratio; 0 for none
		half  float64
	}{
		{"increase is a drift", []Rounds{stepped(10, 100, 110)}, 0, 1.1},
		{"decrease is a drift", []Rounds{stepped(10, 110, 100)}, 0, 1 / 1.1},
		{"step in one of two rows is a drift of half of it", []Rounds{stepped(40, 100, 121), stepped(40, 100, 100)}, 0, 1.1},
		{"significant shift of 1 % is not reported", []Rounds{stepped(40, 100, 101)}, 0, 0},
		{"nine values are too few for a drift", []Rounds{stepped(9, 100, 200)}, 0, 0},
		{"equal values do not drift", []Rounds{from(7, 20, 7)}, 0, 0},
		{"no values do not drift", []Rounds{{}, nil}, 0, 0},
		{"no rows do not drift", nil, 0, 0},
		{"rows with a value that is not positive are ignored", []Rounds{stepped(20, -5, 5), stepped(20, 0, 5)}, 0, 0},
		{"values that are not finite are ignored", []Rounds{row(100, 101, 100, 101, 100, math.NaN(), 110, 111, 110, 111, 110, math.Inf(1))}, 0, 110.0 / 100},
		{"first round twice as long is found", []Rounds{from(200, 12, 100, 101, 102)}, 200.0 / 101, 0},
		{"first round 0.4 times as long is found", []Rounds{from(40, 12, 100, 101, 102)}, 40.0 / 101, 0},
		{"slow second and third round do not hide the first", []Rounds{row(200, 200, 210, 100, 101, 102, 100, 101, 102, 100, 101, 102, 100, 101)}, 200.0 / 101, 0},
		{"slow later round hides the first", []Rounds{row(200, 100, 101, 102, 100, 101, 102, 100, 210, 102, 100, 101, 102)}, 0, 0},
		{"first round 4 % longer is not reported", []Rounds{from(104, 20, 100, 100.1, 100.2)}, 0, 0},
		{"step of a rounded value is not found", []Rounds{from(6, 20, 5, 5, 4, 6, 5)}, 0, 0},
		{"second round does not replace a failed first one", []Rounds{without(from(100, 14, 100, 101, 102), 0), without(row(1, 200, 101, 102, 100, 101, 102, 100, 101, 102, 100, 101, 102), 0)}, 0, 0},
	} {
		got := SteadinessOf(tt.rows, 1)
		for what, m := range map[string]struct {
			got  Moved
			want float64
		}{"first round": {got.First, tt.first}, "drift": {got.Half, tt.half}} {
			if m.got.Found != (m.want != 0) || m.got.Found && math.Abs(m.got.Ratio-m.want) > 0.01 || !(m.got.P >= 0 && m.got.P <= 1) {
				t.Errorf("%s: %s is %+v, want %g", tt.name, what, m.got, m.want)
			}
		}
	}
}

func TestDriftOverRoundsIsFound(t *testing.T) {
	t.Parallel()
	const records = 200
	for _, tt := range []struct {
		name  string
		moved func(round, n int) float64
		first bool
	}{
		{"first round twice as long", func(round, _ int) float64 { return 1 + 1/float64(1+1000*round) }, true},
		{"three rounds three times as long", func(round, _ int) float64 { return 1 + 2*float64(count(round < 3)) }, true},
		{"first round half as long", func(round, _ int) float64 { return 1 - 0.5*float64(count(round == 0)) }, true},
		{"machine slows by 30 %", func(round, n int) float64 { return 1 + 0.3*float64(round)/float64(n-1) }, false},
	} {
		r := seeded(11)
		found := 0
		for range records {
			rows := drawn(r, 2, 12, scattered(0.1))
			for _, row := range slices.Concat(rows...) {
				for i := range row {
					row[i] *= tt.moved(i, 12)
				}
			}
			w := warnings(rows, 12)
			found += count(tt.first && w.first || !tt.first && w.drift)
		}
		if found < records*95/100 {
			t.Errorf("%s: found in %d of %d", tt.name, found, records)
		}
	}
}

func values(r Rounds, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r[i]
	}
	return out
}
