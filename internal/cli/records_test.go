package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// What a run prints is what its record says, in every format, at any time.
func TestTheReportOfARunIsThatOfItsRecord(t *testing.T) {
	needRunc(t)
	again := map[string]bool{}                 // each instrument's record is run again, as it was asked for
	for args, says := range map[string]string{ // what the report says, parted by |
		"lifecycle host runc --rounds 1 --warmup 0 -q -o r.jsonl":                                                                     "host|runc|create",
		"overhead host runc --phases idle,1M --sandboxes 1,2,3 --rounds 1 --hold 1100ms --settle 300ms --interval 20ms -q -o r.jsonl": "runc|workload|residual|kind: RuntimeClass|one more sandbox|1M",
		"storage host runc --volume bind,tmpfs --size 4M --jobs write " + strings.Join(short, " "):                                    "host|runc|bind|tmpfs|write 512k|not direct|in short: fio",
		"startup runc --rounds 1 --warmup 0 -q -o r.jsonl":                                                                            "runc",
		"bpf load " + strings.Join(quick, " "):                                                                                        "tare_connect4|findings",
		"bpf quota " + strings.Join(quick, " "):                                                                                       "tare_connect4|findings",
		"bpf memory " + strings.Join(quick, " "):                                                                                      "tare_connect4|findings",
	} {
		t.Run(args, func(t *testing.T) {
			place(t)
			code, out, stderr := tare(t, words(args)...)
			if code != ExitDone {
				t.Fatalf("exit %d\n%s\n%s", code, out, stderr)
			}
			for _, part := range strings.Split(says, "|") {
				if !strings.Contains(out, part) {
					t.Errorf("the report does not say %q:\n%s", part, out)
				}
			}
			if code, again, stderr := tare(t, "report", "r.jsonl"); code != ExitDone || again != out || stderr != "" {
				t.Errorf("exit %d; the stored record is reported otherwise\n%s\n%s", code, again, stderr)
			}
			for _, format := range []string{"md", "csv", "json"} {
				code, first, _ := tare(t, "report", "r.jsonl", "--format", format)
				if _, second, _ := tare(t, "report", "r.jsonl", "--format", format); code != ExitDone || first != second || !whole[format](first) {
					t.Errorf("as %s: exit %d\n%s", format, code, first)
				}
			}
			rec := loaded(t)
			if experiment := rec.Header.Experiment; !again[experiment] {
				again[experiment] = true
				flags := map[string][]string{"overhead": {"--sandboxes", "1", "--phases", "idle"}}[experiment]
				if code, out, stderr := tare(t, append([]string{"run", "r.jsonl", "-q", "-o", "again.jsonl"}, flags...)...); code != ExitDone {
					t.Errorf("measured again: exit %d\n%s\n%s", code, out, stderr)
				}
			}
			switch rec.Header.Experiment {
			case "bpf":
				nothingOf(t, rec)
			case "overhead":
				if n := len(rec.Series); n != 2*4 {
					t.Errorf("%d series", n)
				}
				if slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == "cgroup-leaked" }) {
					t.Errorf("findings %+v", rec.Findings)
				}
			}
		})
	}
}
