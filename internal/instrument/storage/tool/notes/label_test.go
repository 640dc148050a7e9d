package notes

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamesOfTheWritersOwnBeginATarget(t *testing.T) {
	const line = "  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)\n"
	const dd = "10+0 records in\n10+0 records out\n40960 bytes (41 kB, 40 KiB) copied, 2 s, 20.5 kB/s\n"
	for _, c := range []struct{ claim, between, want, named, doubt string }{
		{"a name before a result", "my-vm:\n" + line, "my-vm", "notes.txt:3: my-vm", ""},
		{"one before a command", "bsd:\ndd if=/dev/zero of=f bs=4k count=10\n" + dd, "bsd", "notes.txt:3: bsd", ""},
		{"one before what is typed", "lxc:\n$ cd /mnt\n$ fio --name=x --rw=read\n" + line, "lxc", "notes.txt:3: lxc", ""},
		{"one before dd's lines", "baseline:\n" + dd, "baseline", "notes.txt:3: baseline", ""},
		{"words become one", "VM 1:\n\n" + line, "VM-1", "notes.txt:3: VM-1", ""},
		{"a fence may stand between", "- **my-vm:**\n```\n" + line, "my-vm", "notes.txt:3: my-vm", ""},
		{"so may what comes and how", "my-vm:\nnfs: node-3\nrandom read:\n" + line, "my-vm", "notes.txt:3: my-vm", ""},
		{"JSON is a result", "my-vm:\n{\n\"fio version\" : \"fio-3.33\",\n}\n" + line, "my-vm", "notes.txt:3: my-vm", ""},
		{"what tells the job is no name", "randread:\n" + line, "kata", "", ""},
		{"nor what announces results", "Results of the second run:\n" + line, "kata", "", ""},
		{"prose after it leaves doubt", "my-vm:\nthe same on the old machine\n" + line, "kata", "", "notes.txt:3: my-vm"},
		{"a name that cannot be one leaves doubt", "the old machine (2019):\n" + line, "kata", "", "notes.txt:3: the old machine (2019)"},
		{"a known label after it leaves none", "my-vm:\nit broke\nkata:\n" + line, "kata", "", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			n := read(t, "kata:\n"+line+c.between, Options{})
			last := n.Results[len(n.Results)-1]
			if n.Results[0].Target != "kata" || last.Target != c.want || len(n.Results) != 2 {
				t.Errorf("%+v, want %s", n.Results, c.want)
			}
			for code, want := range map[string]string{FoundName: c.named, FoundDoubt: c.doubt} {
				if got := n.has(code); (got == "") != (want == "") || !strings.HasSuffix(got, want) {
					t.Errorf("%s: %q, want %q", code, got, want)
				}
			}
			if n = read(t, "kata:\n"+line+c.between, Options{Target: "mine"}); n.has(FoundName) != "" || n.has(FoundDoubt) != "" || n.Results[1].Target != "mine" {
				t.Errorf("an option says whose all are: %+v", n)
			}
		})
	}
}

func TestOutputsOfToolsNameNobody(t *testing.T) {
	for _, name := range []string{"fio-3.33-mixed.txt", "fio-3.33-jobs.txt", "fio-3.33.json.txt", "published.md"} {
		if n := readFile(t, name, Options{}); n.has(FoundName) != "" || n.has(FoundDoubt) != "" {
			t.Errorf("%s: %v", name, n.Findings)
		}
	}
}

func TestATablesFiguresAreNoRoundsOfWhatAToolPrinted(t *testing.T) {
	const text = `dd if=/dev/zero of=/data/f bs=4k count=10240 oflag=direct
host:
41943040 bytes (42 MB, 40 MiB) copied, 0.325 s, 129 MB/s

| | write |
| --- | --- |
| host | %s |
| kata | %s |
`
	for claim, c := range map[string]struct {
		host, kata, own, job string
	}{
		"a rate is a job's of its own":                     {"131 MB/s", "99 MB/s", "dd write 4k count=10240", "dd write 4k count=10240 (table)"},
		"IOPS are not dd's, whatever command stands there": {"10850 (5425 MB/s)", "741 (370 MB/s)", "dd write 4k", "unknown write"},
	} {
		t.Run(claim, func(t *testing.T) {
			g := Gather(read(t, fmt.Sprintf(text, c.host, c.kata), Options{}))
			var jobs []string
			for _, cell := range g.Cells {
				jobs = append(jobs, cell.Target+" "+cell.Job)
				if cell.Round != 0 || cell.Job == c.own && (cell.Claim.Write.IOPS > 40000 || cell.Claim.Write.Bandwidth > 130e6) {
					t.Errorf("%+v", cell)
				}
			}
			if got, want := strings.Join(jobs, ", "), "host "+c.own+", host "+c.job+", kata "+c.job; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
