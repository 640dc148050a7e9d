package stat

import "math"

// Parallelism returns Σ latency / makespan of one batch, the average number of operations that
// ran at the same time. 1 means sequential; N means that all N lanes ran for the whole batch.
//
// The sum of overlapping latencies is not a time and is never reported. Both arguments have
// the same unit. NaN if the makespan is not positive, or a value is negative or not finite.
func Parallelism(latencies []float64, makespan float64) float64 {
	if !(makespan > 0) || !Finite(makespan) {
		return math.NaN()
	}
	sum := 0.0
	for _, latency := range latencies {
		if !(latency >= 0) || !Finite(latency) {
			return math.NaN()
		}
		sum += latency
	}
	return sum / makespan
}
