package terms

import (
	"math"
	"time"
)

// Ahead is what a measurement takes, as far as its options tell before it begins.
type Ahead struct {
	Bytes  float64       // written to disks
	Time   time.Duration // at least; 0: not known
	Budget time.Duration // nothing new is begun after it
	More   bool          // bytes are written whose number is not known before
}

// Takes adds times to what it takes.
func (a *Ahead) Takes(times float64, each time.Duration) {
	a.Time = time.Duration(min(float64(a.Time)+times*float64(each), math.MaxInt64/2))
}
