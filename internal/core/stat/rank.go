package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// maxExact is the largest number of pairs for the exact signed-rank test. The normal
// approximation is good enough for more pairs.
const maxExact = 50

// signedRank returns the one-sided p-values of Wilcoxon's test for differences centred at 0.
// They are the probabilities of a sum of positive ranks this small or smaller, and this large
// or larger. Zeros are ranked and then dropped (Pratt). Ties get their mean rank.
func signedRank(d []float64) (less, greater float64) {
	sizes := make([]float64, len(d))
	for i, v := range d {
		sizes[i] = math.Abs(v)
	}
	sum, all, variance := 0, 0, 0.0
	var counted []int
	for i, rank := range placed(sizes) {
		if d[i] == 0 {
			continue
		}
		r := int(2*rank) + 2 // twice the rank from 1, because ranks of ties can be halves
		counted = append(counted, r)
		all += r
		variance += float64(r) * float64(r) / 4
		if d[i] > 0 {
			sum += r
		}
	}
	if all == 0 {
		return 1, 1
	}
	if len(counted) > maxExact {
		z := (float64(sum) - float64(all)/2) / math.Sqrt(variance)
		return stats.StdNormal.CDF(z), stats.StdNormal.CDF(-z)
	}
	for s, p := range signSums(counted, all) {
		if s <= sum {
			less += p
		}
		if s >= sum {
			greater += p
		}
	}
	return less, greater
}

// signSums returns the distribution of the sum of ranks if each is included with probability 1/2.
func signSums(ranks []int, all int) []float64 {
	p := make([]float64, all+1)
	p[0] = 1
	top := 0
	for _, r := range ranks {
		top += r
		for s := top; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	return p
}

// many represents numbers without storing them, such as all pairs of n rounds.
type many struct {
	n           int
	least, most float64
	upTo        func(x float64) int // returns how many numbers are at most x
}

// at returns the number with a rank, counted from 0. It bisects over the bits of all
// floating-point numbers, which have the same order as the numbers.
func (m *many) at(rank int) float64 {
	ordered := func(bits int64) int64 { return bits ^ int64(uint64(bits>>63)>>1) } // its own inverse
	least, most := ordered(int64(math.Float64bits(m.least))), ordered(int64(math.Float64bits(m.most)))
	for least < most {
		middle := least&most + (least^most)>>1 // mean without overflow
		if m.upTo(math.Float64frombits(uint64(ordered(middle)))) > rank {
			most = middle
		} else {
			least = middle + 1
		}
	}
	return math.Float64frombits(uint64(ordered(most))) + 0 // converts −0 to 0
}

func (m *many) median() float64 {
	switch {
	case m.n == 0:
		return math.NaN()
	case m.n%2 == 1:
		return m.at(m.n / 2)
	}
	return m.at(m.n/2-1)/2 + m.at(m.n/2)/2
}

// walsh returns the means of all pairs of differences, including pairs of a difference with
// itself. Their median is the Hodges–Lehmann estimate.
func walsh(d []float64) *many {
	if len(d) == 0 {
		return &many{}
	}
	d = slices.Sorted(slices.Values(d))
	return &many{len(d) * (len(d) + 1) / 2, d[0], d[len(d)-1], func(x float64) (count int) {
		k := len(d) - 1
		for i, a := range d {
			for k >= i && a/2+d[k]/2 > x {
				k--
			}
			if k < i {
				break
			}
			count += k - i + 1
		}
		return count
	}}
}

// shifts returns the differences between all pairs of values of two samples.
func shifts(before, after []float64) *many {
	if len(before) == 0 || len(after) == 0 {
		return &many{}
	}
	before, after = slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after))
	return &many{len(before) * len(after), after[0] - before[len(before)-1], after[len(after)-1] - before[0], func(x float64) (count int) {
		k := 0
		for _, a := range before {
			for k < len(after) && after[k]-a <= x {
				k++
			}
			count += k
		}
		return count
	}}
}

// walshRank returns the rank k of the bounds: the k-th smallest and the k-th largest of [walsh]
// enclose the centre of n differences with confidence of at least 1 − alpha. It is 0 if n is
// too small (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed. 2014,
// section 3.3).
func walshRank(n int, alpha float64) int {
	all := n * (n + 1) / 2
	if n > maxExact {
		return rankWithin(float64(all), float64(all)*float64(2*n+1)/12, alpha)
	}
	r := make([]int, n)
	for i := range r {
		r[i] = i + 1
	}
	tail := 0.0
	for s, p := range signSums(r, all) {
		if tail += p; 2*tail > alpha {
			return s
		}
	}
	return 0
}

// apartRank is [walshRank] for the differences of two samples without pairs (Lehmann; section
// 4.3 of that book), by the normal approximation.
func apartRank(n, m int, alpha float64) int {
	all := float64(n) * float64(m)
	return rankWithin(all, all*float64(n+m+1)/12, alpha)
}

// rankWithin returns the rank of the bounds among all differences. variance is the variance of
// the number of differences above a shift.
func rankWithin(all, variance, alpha float64) int {
	return max(0, int(all/2-stats.StdNormal.InvCDF(1-alpha/2)*math.Sqrt(variance)))
}

const fewestDependent = 10 // the fewest values for a test of dependence

// dependence is the serial dependence of values, computed from ranks.
type dependence struct {
	z   float64 // excess similarity of neighbours, in standard deviations
	rho float64 // lag-1 correlation, corrected for its bias
}

// serial returns the serial dependence of ordered values. Each removed level hides a part of
// it. The second result is false for fewer than [fewestDependent] values and for equal values.
func serial(d []float64, levels int) (dependence, bool) {
	n := float64(len(d))
	squares, steps, before := 0.0, 0.0, 0.0
	for i, r := range placed(d) {
		squares += (r - (n-1)/2) * (r - (n-1)/2)
		if i > 0 {
			steps += (r - before) * (r - before)
		}
		before = r
	}
	if len(d) < fewestDependent || squares == 0 {
		return dependence{}, false
	}
	ratio := steps / squares // 2 for independent values; smaller if neighbours are similar
	sd := math.Sqrt(4 * (n - 2) * (5*n*n - 2*n - 9) / (5 * n * (n + 1) * (n - 1) * (n - 1)))
	rho := 1 - ratio/2
	hidden := float64(levels-1) * (1 + 4*rho) / n
	return dependence{2 * (rho + hidden) / sd, rho + hidden + (1+4*rho)/n}, true
}

// Levels of the tests for dependent rounds. The level for all comparisons of a table together
// is lax: missing a dependence is worse than finding a false one.
const (
	poolAlpha = 0.3
	ownAlpha  = 0.05 // for a single comparison
	sideAlpha = 0.01 // for the rounds of one side
)

const mostDependent = 0.95 // largest correlation to correct for

// correlations returns the correlation to correct each sample for; it is 0 for independent
// samples. All samples are from one run. Most dependence is caused by the machine, so the
// correlation is also estimated over all samples. levels are the numbers of removed levels, by
// default 1.
func correlations(samples [][]float64, levels ...int) []float64 {
	out := make([]float64, len(samples))
	var own []dependence
	var z, rho, n float64
	for i, d := range samples {
		off := 1
		if i < len(levels) {
			off = levels[i]
		}
		s, ok := serial(d, off)
		if own = append(own, s); ok {
			z, rho, n = z+s.z, rho+s.rho, n+1
		}
	}
	pooled := 0.0
	if n > 0 && z/math.Sqrt(n) > stats.StdNormal.InvCDF(1-poolAlpha) {
		pooled = rho / n
	}
	for i, s := range own {
		out[i] = pooled
		if s.z > stats.StdNormal.InvCDF(1-ownAlpha) {
			out[i] = max(out[i], s.rho)
		}
		out[i] = min(max(out[i], 0), mostDependent)
		if len(samples[i]) < fewestDependent {
			out[i] = 0
		}
	}
	return out
}

// fewestEffective is the lower limit for effective values and degrees of freedom. The estimate
// of dependence from a few rounds is uncertain, and could otherwise hide any difference.
const fewestEffective = 3

// effective returns the effective number of independent values among n correlated values.
func effective(n int, rho float64) float64 {
	return max(fewestEffective, float64(n)*(1-rho)/(1+rho))
}

// widening returns the factor on the interval of n dependent rounds. It accounts for the
// smaller number of independent values, and for Student's t with fewer degrees of freedom.
func widening(n int, rho, alpha float64) (by, inflated, freedom float64) {
	count := effective(n, rho)
	inflated, freedom = math.Sqrt(float64(n)/count), max(fewestEffective, count-1)
	return inflated * studentT(1-alpha, freedom) / stats.StdNormal.InvCDF(1-alpha/2), inflated, freedom
}

// placed returns the ranks of the values, counted from 0. Ties get their mean rank.
func placed(d []float64) []float64 {
	out, sorted := make([]float64, len(d)), slices.Sorted(slices.Values(d))
	for i, a := range d {
		first, _ := slices.BinarySearch(sorted, a)
		behind, _ := slices.BinarySearchFunc(sorted, a, func(b, a float64) int {
			if b <= a {
				return -1
			}
			return 1
		})
		out[i] = float64(first+behind-1) / 2
	}
	return out
}

// studentT returns the two-sided quantile of Student's t distribution for a confidence between
// 0 and 1, both exclusive. It returns NaN for invalid arguments.
func studentT(confidence, freedom float64) float64 {
	if !(confidence > 0 && confidence < 1) || !(freedom > 0) {
		return math.NaN()
	}
	return stats.InvCDF(stats.TDist{V: freedom})((1 + confidence) / 2)
}
