package load

import (
	"os"
	"testing"
)

// The tests' own program is what is executed again.
func TestMain(m *testing.M) {
	if code, handled := Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
