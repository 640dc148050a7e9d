package version

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestOfABuild(t *testing.T) {
	vcs := func(revision, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
	}
	for _, test := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a fetched module has its version", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		{"a clean tree has its commit", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs("0123456789abcdef", "false")}, "0123456789ab"},
		{"a changed tree says so", debug.BuildInfo{Settings: vcs("0123456789abcdef", "true")}, "0123456789ab-dirty"},
		{"without either it is unknown", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, "Of", Of(&test.info), test.want)
		})
	}
}

// TestEveryDependencyHasItsReason compares go.mod with docs/dependencies.md: every module
// needs a documented reason.
func TestEveryDependencyHasItsReason(t *testing.T) {
	mod := must.Get(os.ReadFile("../../go.mod"))(t)
	docs := must.Get(os.ReadFile("../../docs/dependencies.md"))(t)
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllSubmatch(mod, -1)
	must.That(t, len(direct) >= 20, "go.mod has %d direct requirements: they are not read as they are written", len(direct))
	for _, m := range direct {
		check.Contains(t, "docs/dependencies.md does not say why", string(docs), string(m[1]))
	}
}
