package version

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// TestEveryDependencyHasItsReason holds go.mod and docs/dependencies.md together: nobody
// takes a module without saying why.
func TestEveryDependencyHasItsReason(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	must.OK(t, err)
	docs, err := os.ReadFile("../../docs/dependencies.md")
	must.OK(t, err)
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllSubmatch(mod, -1)
	if len(direct) < 20 {
		t.Fatalf("go.mod has %d direct requirements: they are not read as they are written", len(direct))
	}
	for _, m := range direct {
		if name := string(m[1]); !strings.Contains(string(docs), name) {
			t.Errorf("docs/dependencies.md does not say why there is %s", name)
		}
	}
}
