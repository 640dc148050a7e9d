package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

func TestEveryToolGivesFiguresOnHostAndRunc(t *testing.T) {
	needRunc(t)
	for tool, want := range map[string]struct {
		ask  string
		jobs []string
		cell int64 // bytes that a cell moves, 0 where the tool decides
	}{
		"fio":      {"rndrw", []string{"rndrw 512k"}, 4 << 20},
		"dd":       {"write,read", []string{"write 4k", "read 4k"}, 4 << 20},
		"sysbench": {"plan", []string{"rndrw 16k"}, 0},
	} {
		t.Run(tool, func(t *testing.T) {
			place(t)
			code, rec, out, stderr := weighed(t, "host", "runc", "--tool", tool, "--volume", "bind", "--jobs", want.ask, "--size", "4M", "--numjobs", "1", "--runtime-limit", "1s")
			if code != ExitDone || len(rec.Cells) != 2*len(want.jobs) {
				t.Fatalf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
			}
			for _, x := range rec.Cells {
				if x.Reported == nil || x.Tool != tool || x.Version == "" || !slices.Contains(want.jobs, strings.TrimPrefix(x.Job, tool+" ")) {
					t.Errorf("%+v", x)
					continue
				}
				if moved := x.Reported.Read.Bytes + x.Reported.Write.Bytes; moved == 0 || want.cell > 0 && moved != want.cell {
					t.Errorf("%s %s moved %d bytes", x.Target, x.Job, moved)
				}
			}
		})
	}
}

// TestThePlanOfTheKataReportRuns runs all of its jobs, at a thousandth of their
// size, on targets that every machine with runc has.
func TestThePlanOfTheKataReportRuns(t *testing.T) {
	needRunc(t)
	text, err := os.ReadFile("../../plans/kata-io.yaml")
	if err != nil {
		t.Fatal(err)
	}
	place(t)
	here := string(text)
	for from, to := range map[string]string{
		"targets: [host, containerd/runc, containerd/kata]\n": "targets: [host, runc]\n",
		"rounds: 3\n": "rounds: 1\n      ceiling: 0s\n      settle: 0s\n      drop: files\n", // the test's time, not the plan's
	} {
		if strings.Count(here, "      "+from) != 1 {
			t.Fatalf("the plan has no one line %q", from)
		}
		here = strings.Replace(here, from, to, 1)
	}
	if err := os.WriteFile("kata-io.yaml", []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := tare(t, "run", "kata-io.yaml", "--scale", "0.001", "--rounds", "1", "-q", "-o", "r.jsonl")
	if code != ExitDone {
		t.Fatalf("exit %d\n%s\n%s", code, out, stderr)
	}
	rec, err := record.Load("r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// On rootfs dd's two and fio's four and sysbench's, direct, and the three
	// of random reads both ways; on a folder dd's two.
	if want := 2 * (2 + 4 + 1 + 3*2 + 2); len(rec.Cells) != want {
		t.Errorf("%d cells, want %d", len(rec.Cells), want)
	}
	for _, x := range rec.Cells {
		if x.Failure != nil || x.Reported == nil || x.Reported.Read.Bandwidth+x.Reported.Write.Bandwidth == 0 {
			t.Errorf("%s %s on %s: %+v", x.Target, x.Job, x.Volume, x.Failure)
		}
	}
	for _, job := range []string{"dd 4 GB", "dd 42 GB", "randread 512k", "read 512k", "randwrite 512k", "write 512k", "small files 100 x 10M", "big file 5G", "big file 10G", "sysbench rndrw 16k"} {
		if !strings.Contains(out, "\n"+job+", rootfs, direct: ") {
			t.Errorf("no table of %s:\n%s", job, out)
		}
	}
}
