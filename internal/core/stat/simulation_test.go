package stat

import (
	"math"
	"math/rand/v2"
)

// seeded returns a repeatable random generator.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(2020, seed)) }

// lognormal draws n values around a median, skewed to the right like start times. sigma
// is about the relative standard deviation.
func lognormal(r *rand.Rand, n int, median, sigma float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = median * math.Exp(sigma*r.NormFloat64())
	}
	return values
}

// machine models the speed of the whole machine during a run. It returns one factor per
// round, common to all targets.
type machine func(r *rand.Rand, n int) []float64

func steady(_ *rand.Rand, n int) []float64 {
	factors := make([]float64, n)
	for i := range factors {
		factors[i] = 1
	}
	return factors
}

// slowing becomes 30 % slower from the first to the last round.
func slowing(_ *rand.Rand, n int) []float64 {
	factors := make([]float64, n)
	for i := range factors {
		factors[i] = 1 + 0.3*float64(i)/float64(n-1)
	}
	return factors
}

// wandering returns a random walk with steps of about 5 % per round.
func wandering(r *rand.Rand, n int) []float64 {
	factors := make([]float64, n)
	level := 1.0
	for i := range factors {
		level *= math.Exp(0.05 * r.NormFloat64())
		factors[i] = level
	}
	return factors
}

func scattered(sigma float64) func(r *rand.Rand, n int) []float64 {
	return func(r *rand.Rand, n int) []float64 { return lognormal(r, n, 100, sigma) }
}

// remembering returns noise in which each round keeps the share rho of the previous one.
func remembering(rho, sigma float64) func(r *rand.Rand, n int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		out := make([]float64, n)
		level := r.NormFloat64()
		for i := range out {
			if i > 0 {
				level = rho*level + math.Sqrt(1-rho*rho)*r.NormFloat64()
			}
			out[i] = 100 * math.Exp(sigma*level)
		}
		return out
	}
}

func changed(sigma float64, change func(r *rand.Rand, v float64) float64) func(r *rand.Rand, n int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		out := lognormal(r, n, 100, sigma)
		for i := range out {
			out[i] = change(r, out[i])
		}
		return out
	}
}

// outlying returns noise with an outlier of three times the value in one of 20 rounds.
func outlying(sigma float64) func(r *rand.Rand, n int) []float64 {
	return changed(sigma, func(r *rand.Rand, v float64) float64 {
		if r.IntN(20) == 0 {
			return 3 * v
		}
		return v
	})
}

func rounded(sigma float64) func(r *rand.Rand, n int) []float64 {
	return changed(sigma, func(_ *rand.Rand, v float64) float64 { return 5 * math.Round(v/5) })
}

// run simulates one target over the rounds of a machine.
func run(r *rand.Rand, factors []float64, median, sigma float64) Rounds {
	rounds := Rounds{}
	for i, v := range lognormal(r, len(factors), median, sigma) {
		rounds[i] = v * factors[i]
	}
	return rounds
}

const simulations = 2000

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// share converts a count of simulations to percent.
func share(of int) float64 { return 100 * float64(of) / simulations }
