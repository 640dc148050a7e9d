package version

import (
	"runtime/debug"
	"testing"
)

func TestOfABuild(t *testing.T) {
	vcs := func(revision, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
	}
	tests := []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a fetched module has its version", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		{"a clean tree has its commit", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs("0123456789abcdef", "false")}, "0123456789ab"},
		{"a changed tree says so", debug.BuildInfo{Settings: vcs("0123456789abcdef", "true")}, "0123456789ab-dirty"},
		{"without either it is unknown", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Of(&test.info); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
