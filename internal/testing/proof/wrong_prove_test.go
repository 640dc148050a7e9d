//go:build prove

package proof

import (
	"testing"

	"github.com/tare-bench/tare/internal/subject/find"
)

// The same as TestProgramErrorsAreFailuresWithCauses on every target, including engines
// that wait ten seconds before they kill.
func TestProgramErrorsAreFailuresWithCausesOnEveryTarget(t *testing.T) {
	wrong(t, append(fleet(t), bridged(t)), func(find.Found, misdeed) bool { return false })
}
