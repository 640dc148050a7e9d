package terms

import (
	"math"
	"time"
)

// Ahead is the estimated cost of a measurement, as far as its options determine it.
type Ahead struct {
	Bytes  float64       // written to disks
	Time   time.Duration // minimum; 0: unknown
	Budget time.Duration // time after which nothing new starts
	More   bool          // more bytes are written, but their number is not known in advance
}

// Takes adds the duration of repeated steps. The total does not overflow.
func (a *Ahead) Takes(times float64, each time.Duration) {
	a.Time = time.Duration(min(float64(a.Time)+times*float64(each), math.MaxInt64/2))
}
