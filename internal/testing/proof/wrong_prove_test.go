//go:build prove

package proof

import (
	"testing"

	"github.com/tare-bench/tare/internal/subject/find"
)

// The same holds on every target, even if an engine waits for ten seconds before it
// kills.
func TestWhatAProgramDoesWrongIsAFailureWithItsCauseOnEveryTarget(t *testing.T) {
	wrong(t, append(fleet(t), bridged(t)), func(find.Found, misdeed) bool { return false })
}
