package cgroupstat

// Since is how much a counter of one group has grown between two readings. ok is
// false when it went back: it is not the counter it was, and nothing can be said
// of the time between.
func Since(before, now int64) (delta int64, ok bool) {
	if before < 0 || now < before {
		return 0, false
	}
	return now - before, true
}
