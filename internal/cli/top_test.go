package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTopRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		claim string
		args  []string
		want  string
	}{
		{"an interval that is no time", []string{"--interval", "1ms"}, "--interval: 1ms is not between"},
		{"an order that there is not", []string{"--sort", "size"}, `--sort: "size" is not an order`},
		{"an engine that there is not", []string{"--engine", "dokcer"}, `--engine: "dokcer" is no engine and no isolation: docker, podman`},
		{"a format that there is not", []string{"--format", "xml"}, `--format: "xml" is not a format`},
		{"a negative number of rows", []string{"-n", "-1"}, "-n:"},
	} {
		code, _, stderr := tare(t, append([]string{"top", "--once"}, c.args...)...)
		if code != ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d: %s", c.claim, code, stderr)
		}
	}
}

func TestTopPrintsOneObjectAndEnds(t *testing.T) {
	code, out, stderr := tare(t, "top", "--once", "--interval", "100ms", "--format", "json")
	var v struct {
		Schema    int
		Node      struct{ CPUs int }
		Sandboxes []any
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != ExitDone || v.Schema != 1 || v.Node.CPUs < 1 || v.Sandboxes == nil {
		t.Errorf("exit %d: %v: %s%s", code, err, out, stderr)
	}
}
