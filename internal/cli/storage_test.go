package cli

import (
	"slices"
	"strings"
	"testing"
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
