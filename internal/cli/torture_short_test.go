//go:build !torture

package cli

// torturing reports whether make torture requested all trials, which take an hour. make
// test runs only the first few.
const torturing = false
