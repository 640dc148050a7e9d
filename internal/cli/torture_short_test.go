//go:build !torture

package cli

// torturing is true in make torture, which runs all trials for an hour. make test only
// runs the first ones.
const torturing = false
