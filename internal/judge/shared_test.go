package judge_test

const (
	ms  = 1_000_000
	mib = 1 << 20
)
