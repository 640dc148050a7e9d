//go:build !torture

package cli

// torturing is whether make torture asked for every trial, which takes an hour, or
// make test for the first few.
const torturing = false
