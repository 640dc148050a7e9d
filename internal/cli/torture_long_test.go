//go:build torture

package cli

const torturing = true
