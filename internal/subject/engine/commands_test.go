package engine

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestOnlyWhatAnEngineDoesNotKnowIsUnknown(t *testing.T) {
	// Of podman 5 on cgroup v1, for every command.
	const warning = `time="2026-11-06T16:57:41Z" level=warning msg="Using cgroups-v1 which is deprecated in favor of cgroups-v2 with Podman v5 and will be removed in a future version."`
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&cli.Error{Exit: 125, Output: "Error: inspecting object: no such container nosuch"}, true},
		{&cli.Error{Exit: 1, Output: "Error: localhost/x: image not known"}, true},
		{&cli.Error{Exit: 125, Output: "Error: no such container a\nError: database is locked"}, false},
		{&cli.Error{Exit: 125, Output: warning + "\nError: inspecting object: no such container nosuch"}, true},
		{&cli.Error{Exit: 125, Output: warning + "\nError: database is locked"}, false},
		{&cli.Error{Exit: 125, Output: warning}, false},
		{&cli.Error{Exit: 1, Output: "Error response from daemon: No such image or container or accelerator:a\nInspect error: No such object:a\n"}, true},
		{&cli.Error{Exit: 1, Output: "Can not connect with server\nInspect error: No such object:a\n"}, false},
		{&cli.Error{Exit: 125}, false},
		{&cli.Error{Exit: -1, Output: "no such"}, false},
		{errors.New("no such container"), false},
		{nil, false},
	} {
		if got := Unknown(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestAContainerThatCannotBeInspectedCostsItsOwnLaneOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine")
	script := `#!/bin/sh
case "$*" in
inspect\ *\ *) echo "Error: one of them is broken" >&2; exit 1;;
*broken) echo "Error: it is broken" >&2; exit 1;;
*gone) echo "Error: no such container gone" >&2; exit 1;;
esac
echo "[{\"Id\":\"1\",\"Name\":\"$2\",\"State\":{\"Status\":\"created\"}}]"
`
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	c := &Commands{Program: cli.Program{Path: path}, Inspect: []string{"inspect"}}
	known, err := c.Look(t.Context(), []string{"a", "broken", "gone", "b"})
	if got := slices.Sorted(maps.Keys(known)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("known are %q", got)
	}
	if err == nil || !strings.Contains(err.Error(), "it is broken") || strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}
