package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

func TestOverheadsRecordIsReportedInEveryFormat(t *testing.T) {
	needRunc(t)
	place(t)
	code, out, stderr := tare(t, "overhead", "host", "floor", "runc", "--phases", "idle,1M", "--sandboxes", "1,2,3", "--rounds", "2", "--hold", "1100ms", "--settle", "300ms", "--interval", "20ms", "--check", "250m,160Mi", "-o", "r.jsonl")
	if code != ExitDone {
		t.Fatalf("exit %d\n%s\n%s", code, out, stderr)
	}
	for _, part := range []string{"runc", "workload", "residual", "kind: RuntimeClass", "one more sandbox", "1M"} {
		if !strings.Contains(out, part) {
			t.Errorf("the report does not say %q", part)
		}
	}
	code, again, stderr := tare(t, "report", "r.jsonl")
	if code != ExitDone || again != out {
		t.Errorf("exit %d; the stored record is reported otherwise\n%s\n%s", code, again, stderr)
	}
	code, text, _ := tare(t, "report", "r.jsonl", "--format", "json")
	if code != ExitDone || !json.Valid([]byte(text)) {
		t.Errorf("exit %d; JSON %.200s", code, text)
	}
	for _, format := range []string{"md", "csv"} {
		if code, text, _ := tare(t, "report", "r.jsonl", "--format", format); code != ExitDone || !strings.Contains(text, "runc") {
			t.Errorf("%s: exit %d\n%.200s", format, code, text)
		}
	}
	rec, err := record.Load("r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rec.Series); n != 3*2*4 {
		t.Errorf("%d series", n)
	}
	if slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == "cgroup-leaked" }) {
		t.Errorf("findings %+v", rec.Findings)
	}
}

func TestOverheadRefusesWhatItCannotDo(t *testing.T) {
	place(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown phase":           {[]string{"--phases", "idle,jump"}, "--phases"},
		"counts that fall":           {[]string{"--sandboxes", "5,1"}, "--sandboxes"},
		"an overhead of no quantity": {[]string{"--check", "lots"}, "--check"},
		"a limit of no resource":     {[]string{"--limit", "disk=1"}, "--limit"},
		"a hold shorter than a tick": {[]string{"--hold", "10ms"}, "hold"},
		"a target that is not here":  {[]string{"nosuchruntime"}, "nosuchruntime"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := tare(t, append([]string{"overhead", "host"}, test.args...)...)
			if code != ExitUsage || out != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit %d, out %q, err %q", code, out, stderr)
			}
		})
	}
}
