package record

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestALineThatCannotBeTrueIsAProblem(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for row := range strings.Lines(string(text)) {
		c := strings.SplitN(strings.TrimSpace(row), " | ", 4)
		if len(c) != 4 {
			continue
		}
		rows++
		t.Run(c[0]+" "+c[1], func(t *testing.T) {
			t.Parallel()
			refused(t, edited(t, c[0], expanded(c[2])), c[3])
		})
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
}

// expanded writes the short forms of a row out, the inner ones first.
func expanded(edits string) string {
	short := regexp.MustCompile(`(LONG|NAMES|LIST)\((\d+)(?:,([^()]*))?\)`)
	for short.MatchString(edits) {
		edits = short.ReplaceAllStringFunc(edits, func(form string) string {
			m := short.FindStringSubmatch(form)
			n, _ := strconv.Atoi(m[2])
			switch m[1] {
			case "LONG":
				return long(n)
			case "NAMES":
				return numbered(n)
			}
			return list(n, m[3])
		})
	}
	return edits
}

func refused(t *testing.T, line, want string) {
	t.Helper()
	good := `{"type":"finding","code":"good"}` + "\n"
	got, err := Read(strings.NewReader(headerLine + line + good))
	if err != nil || len(got.Problems) != 1 || count(got) != 2 || got.Problems[0].Line != 2 {
		t.Fatalf("%v, %+v", err, got)
	}
	if why := got.Problems[0].Reason; !strings.Contains(why, want) || strings.Contains(why, "\n") {
		t.Errorf("the reason is %q", why)
	}
}

func TestImpossibleTimesNeverBecomeALatency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sample, want string }{
		"returned before start":        {`{"start":1500,"returned":1400}`, "lane 0: returned 1400 is before the start 1500"},
		"running before start":         {`{"start":1500,"running":1400}`, "running"},
		"spawned before start":         {`{"start":1500,"spawned":1400}`, "spawned"},
		"first before start":           {`{"start":1500,"first":1400}`, "first"},
		"seen before start":            {`{"start":1500,"seen":1400}`, "seen"},
		"exited before start":          {`{"start":1500,"exited":1400}`, "exited"},
		"a negative start":             {`{"start":-1}`, "start is -1 and cannot be negative"},
		"a negative stamp":             {`{"start":1500,"returned":-9223372036854775808}`, "cannot be negative"},
		"no start":                     {`{"returned":1400}`, "no start"},
		"a start before the release":   {`{"start":900,"returned":1400}`, "before the batch's release 1000"},
		"output before the first step": {`{"start":1500,"first":1700,"seen":1600}`, "output cannot come before"},
		"an end before the first step": {`{"start":1500,"first":1700,"exited":1600}`, "cannot end before it begins"},
		"a stamp of the wall clock":    {`{"start":1500,"first":1772366400000000000}`, "of another clock"},
		"a stamp at the end of time":   {`{"start":1500,"returned":9223372036854775807}`, "of another clock"},
		"negative CPU time":            {`{"start":1500,"user_cpu":-1}`, "user_cpu"},
		"negative memory":              {`{"start":1500,"max_rss":-1}`, "max_rss"},
		"a lane beyond the batch":      {`{"lane":2,"start":1500}`, "lane 2 in a batch of 2"},
		"a negative lane":              {`{"lane":-1,"start":1500}`, "lane -1"},
		"a lane twice":                 {`{"start":1500},{"start":1500}`, "lane 0 is there twice"},
		"more samples than lanes":      {`{"start":1500},{"lane":1,"start":1500},{"lane":3,"start":1500}`, "3 samples and 0 lost lanes in a batch of 2"},
		"a failure of no kind":         {`{"start":1500,"failure":{}}`, "failure: kind is missing"},
		"a failure in the past":        {`{"start":1500,"returned":1400,"failure":{"kind":"exit"}}`, "returned 1400"},
		"a failure before the release": {`{"returned":900,"failure":{"kind":"exit"}}`, "returned 900 is before the start 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, batchPrefix+"["+c.sample+"]}\n", c.want)
		})
	}
}

func TestWhatLooksOddButCanBeIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ example, claim, edits string }{
		{"batch", "with a lane that never started", `samples.0={"lane":0,"failure":{"kind":"interrupted"}}`},
		{"batch", "with a command that outlives its container's exit", `samples.0={"start":81204050000,"first":81204050001,"exited":81204050002,"returned":81204050003}`},
		{"batch", "with a state seen before the command returned", `samples.0={"start":81204050000,"running":81204050001,"returned":81204050002}`},
		{"batch", "with a guest's clock far from ours", `samples.0.guest=5`},
		{"batch", "with a start at the very release", `samples.0={"start":81204000000,"returned":81204000000}`},
		{"batch", "without roles", `roles=[]`},
		{"batch", "with a role of a later version", `roles.0.role="pager"`},
		{"batch", "with a process that was there in between", `roles.0={"role":"shim2","pss_peak":9}`},
		{"batch", "with a daemon that gave memory back", `roles.0.pss_after=1`},
		{"reading", "before the sandboxes", `phase="" & sandboxes=0 & moment="before"`},
		{"reading", "after the sandboxes", `phase="" & sandboxes=0 & moment="after" & left=["/a"]`},
		{"reading", "with a charge and a role of later", `groups.0.charge="guest" & processes.0.role="pager"`},
		{"reading", "with nothing reported", `engine.0.memory=-1`},
		{"reading", "of a node that could not be read", `host={} & failure={"kind":"error","detail":"x"}`},
		{"reading", "with a peak read before the usage", `groups.0.memory.peak=1`},
		{"reading", "with the time of a vCPU read after", `processes.0.vcpu=21000000001`},
		{"reading", "with a pid that began anew", `processes=[{"pid":7,"start":1,"role":"shim"},{"pid":7,"start":2,"role":"shim"}]`},
		{"reading", "without groups, processes and statistics", `groups=null & processes= & engine=`},
		{"cell", "that failed before it began", `claim= & seen= & begun= & ended= & failure={"kind":"timeout"}`},
		{"cell", "on one of several volumes of a kind", `volume="nfs=server:/path"`},
		{"cell", "that nobody watched", `seen= & layout=`},
		{"cell 3", "that failed long ago", `claim= & failure={"kind":"exit"}`},
		{"cell 3", "of which only the IOPS are known", `claim={"read":{"iops":766021}}`},
		{"start", "with the exit of a process that was killed", `processes.0.exit=-1`},
		{"logs", "without anything", `missing= & forms= & files=`},
		{"point", "with fields of a later version", `later={"a":[[]]} & asked.later=1`},
	} {
		t.Run(c.example+" "+c.claim, func(t *testing.T) {
			t.Parallel()
			got, err := Read(strings.NewReader(headerLine + edited(t, c.example, c.edits)))
			if err != nil || len(got.Problems) != 0 || count(got) != 2 {
				t.Errorf("%v, problems %v", err, got.Problems)
			}
		})
	}
}
