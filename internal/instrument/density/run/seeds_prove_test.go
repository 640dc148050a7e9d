//go:build prove

package run_test

import "testing"

func TestDensityStopsBeforeTheGuardForAHundredSeeds(t *testing.T) { stopsBeforeTheGuard(t, 100) }
