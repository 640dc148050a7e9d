//go:build prove

package proof

import "testing"

// And on the other engines.
func TestADensityCountsEverySandboxOfOtherEngines(t *testing.T) {
	count(t, "podman/crun", "containerd/runc", "cri+cri-o/crun")
}
