package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// says are parts of what the reports of examples say, parted by |.
var says = map[string]string{
	"tare lifecycle host floor runc --rounds 6 -o run.jsonl":                                                                          "host|runc|create",
	"tare overhead host runc --sandboxes 1,5":                                                                                         "runc|workload|residual|not what a kubelet runs|one more sandbox",
	"tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi":                                              "idle|1M|10M",
	"tare storage host runc --volume bind --size 8M --jobs randread,write --rounds 1 --ceiling 100ms":                                 "host|runc|bind|write 512k|in short: fio",
	"tare storage runc --volume bind,tmpfs --cache direct,buffered --jobs read --bs 4k --size 4M --rounds 1 --ceiling 0 --drop files": "tmpfs|not direct",
	"tare startup runc --rounds 3":                                                      "runc",
	"tare bpf load -c 10 -t 200ms --idle 100ms --rounds 1":                              "tare_connect4|findings",
	"tare bpf quota --cpus 0.5 -c 10 -t 200ms --idle 100ms --heavy 0,100000 --rounds 1": "tare_connect4|findings",
	"tare bpf memory --services 1,100 -c 10 -t 200ms --idle 100ms":                      "tare_connect4|findings",
}

var recordsAt = regexp.MustCompile(`(?m)^record: (.*)$`)

// What a run prints is what its record says, in every format, at any time, and of each
// instrument one is measured again, as it was asked for.
func (again ranAgain) check(t *testing.T, line string, code int, args []string, out, stderr string) {
	t.Helper()
	paths := recordsAt.FindAllStringSubmatch(stderr, -1)
	if len(paths) != 1 || args[0] == "gate" || slices.Contains(args, "--baseline") {
		return // it has no record, or is a report of another kind
	}
	path := paths[0][1]
	rec, err := record.Load(path)
	if err != nil {
		t.Error(err)
		return
	}
	for part := range strings.SplitSeq(says[line], "|") {
		if !strings.Contains(out, part) {
			t.Errorf("%s: the report does not say %q:\n%s", line, part, out)
		}
	}
	form := []string{"report", path}
	if i := slices.Index(args, "--format"); i >= 0 {
		form = append(form, args[i:i+2]...)
	}
	if slices.Contains(args, "--explain") {
		form = append(form, "--explain")
	}
	if now, again, stderr := tare(t, form...); now != code || again != out || stderr != "" {
		t.Errorf("%s: exit %d; the stored record is reported otherwise\n%s\n%s\n%s", line, now, out, again, stderr)
	}
	experiment := rec.Header.Experiment
	if experiment == "bpf" {
		nothingOf(t, rec)
	}
	if line == "tare overhead host runc --sandboxes 1,5" && slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == "cgroup-leaked" }) {
		t.Errorf("findings %+v", rec.Findings)
	}
	if strings.Contains(line, "--phases idle,10M,100M") && len(rec.Series) != 2*3 {
		t.Errorf("%d series", len(rec.Series))
	}
	if says[line] == "" {
		return
	}
	for _, format := range []string{"md", "csv", "json"} {
		_, first, _ := tare(t, "report", path, "--format", format)
		if now, second, _ := tare(t, "report", path, "--format", format); now != code || first != second || !whole[format](first) {
			t.Errorf("%s as %s: exit %d\n%s", line, format, now, first)
		}
	}
	if again[experiment] {
		return
	}
	again[experiment] = true
	run := []string{"run", path, "-q", "-o", "again-" + experiment + ".jsonl"}
	if experiment == "overhead" {
		run = append(run, "--sandboxes", "1", "--phases", "idle")
	}
	ends(t, ExitDone, "", run...)
}

// ranAgain are the instruments of which a record was measured again.
type ranAgain map[string]bool
