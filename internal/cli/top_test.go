package cli

import (
	"encoding/json"
	"testing"
)

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
