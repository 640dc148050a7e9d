package record

import (
	"fmt"
	"strings"
	"testing"
)

const rolesPrefix = `{"type":"batch","phase":"measure","target":"docker/runc","op":"create","lanes":2,"released":1000,"samples":[],"roles":`

func TestImpossibleUseOfARoleIsAProblem(t *testing.T) {
	tests := map[string]struct{ roles, want string }{
		"a role of no name":                 {`[{"before":1}]`, "without a role"},
		"a role of a long name":             {`[{"role":"` + strings.Repeat("x", 65) + `"}]`, "65 bytes long"},
		"a role twice":                      {`[{"role":"shim"},{"role":"shim"}]`, "role shim is there twice"},
		"too many roles":                    {"[" + strings.TrimSuffix(strings.Repeat(`{"role":"a"},`, 65), ",") + "]", "65 roles"},
		"a negative number of processes":    {`[{"role":"shim","after":-1}]`, "role shim: after is -1"},
		"more processes than pids":          {`[{"role":"shim","before":4194305}]`, "before is 4194305"},
		"negative CPU time":                 {`[{"role":"daemon","after":1,"cpu":-1}]`, "cpu is -1"},
		"CPU time of another unit":          {`[{"role":"daemon","after":1,"cpu":9223372036854775807}]`, "cpu is 9223372036854775807"},
		"negative memory":                   {`[{"role":"daemon","before":1,"pss_before":-5}]`, "pss_before is -5"},
		"more memory than addresses":        {`[{"role":"daemon","pss_peak":9223372036854775807}]`, "pss_peak is"},
		"a negative number of the unread":   {`[{"role":"daemon","unread":-1}]`, "unread is -1"},
		"a peak below what was there after": {`[{"role":"daemon","after":1,"pss_peak":4,"pss_after":5}]`, "pss_peak 4 is below 5"},
		"a peak below what was before":      {`[{"role":"daemon","before":1,"pss_peak":4,"pss_before":6}]`, "pss_peak 4 is below 6"},
		"memory of no process before":       {`[{"role":"shim","pss_before":6,"pss_peak":6}]`, "without a process before"},
		"memory of no process after":        {`[{"role":"shim","pss_after":6,"pss_peak":6}]`, "without a process after"},
		"CPU time of no process":            {`[{"role":"shim","cpu":6}]`, "without a process after"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + rolesPrefix + test.roles + "}\n"))
			if err != nil || len(got.Batches) != 0 || len(got.Problems) != 1 {
				t.Fatalf("%v, %+v", err, got)
			}
			if !strings.Contains(got.Problems[0].Reason, test.want) {
				t.Errorf("the reason is %q", got.Problems[0].Reason)
			}
		})
	}
}

func TestPossibleUseOfARoleIsLetThrough(t *testing.T) {
	for name, roles := range map[string]string{
		"none":                                  `[]`,
		"a role of a later version":             `[{"role":"pager","before":1,"after":1,"cpu":5,"pss_before":6,"pss_peak":7,"pss_after":6}]`,
		"a process that was there in between":   `[{"role":"shim","pss_peak":9}]`,
		"one that could not be read":            `[{"role":"daemon","before":1,"after":1,"unread":2}]`,
		"a daemon that gave memory back":        `[{"role":"daemon","before":1,"after":1,"pss_before":9,"pss_peak":9,"pss_after":3}]`,
		"a shim for each container and no more": `[{"role":"shim","before":0,"after":100,"cpu":7,"pss_peak":900,"pss_after":900}]`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + rolesPrefix + roles + "}\n"))
			if err != nil || len(got.Batches) != 1 || len(got.Problems) != 0 {
				t.Errorf("%v, problems %v", err, got.Problems)
			}
		})
	}
}

func TestRolesComeBackAsTheyWere(t *testing.T) {
	text, _ := plainText(t)
	got, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(fullRecord().Batches[1].Roles)
	if have := fmt.Sprint(got.Batches[1].Roles); have != want {
		t.Errorf("got %s, want %s", have, want)
	}
}
