package run_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// meter maps the name of a target to the processes that are read while the target has
// sandboxes.
type meter map[string][]record.Process

func (m meter) Read(_ context.Context, boxes []attribution.Sandbox, _ []int, _ bool) record.Reading {
	var x record.Reading
	for _, b := range boxes {
		name := strings.Split(b.IDs[0], "-")[1]
		x.Processes = append(x.Processes, m[name]...)
		x.Groups = append(x.Groups, record.Group{Path: "/" + name, Charge: record.ChargePod}, record.Group{Path: "/c/shared", Charge: record.ChargeShared})
	}
	return x
}

// There reports whether a cgroup still exists. Only that of target c does.
func (m meter) There(group string) bool { return strings.HasPrefix(group, "/c") }

// running starts a process that runs until the test stops it.
func running(t *testing.T, role record.Role) (p record.Process, end func()) {
	c := exec.CommandContext(t.Context(), "cat")
	in := must.Get(c.StdinPipe())(t)
	must.OK(t, c.Start())
	id := must.Get(procs.Identify(c.Process.Pid))(t)
	return record.Process{Pid: id.Pid, Start: id.Start, Name: "cat", Role: role, Rule: "started by the shim"}, func() { _ = in.Close(); _ = c.Wait() }
}

func TestProcessOutlivingItsSandboxesIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		role  record.Role
		ends  bool
		other bool // the process also existed while target a had sandboxes
		want  string
	}{
		"process stays":             {record.RoleShim, false, false, "b: processes that outlived their sandboxes: 1, of 1 of 4 visits (cat, started by the shim)"},
		"process exits":             {record.RoleShim, true, false, ""},
		"daemon":                    {record.RoleDaemon, false, false, ""},
		"process of another target": {record.RoleRuntime, false, true, "a: processes that outlived their sandboxes: 1, of 1 of 4 visits"},
	} {
		t.Run(name, func(t *testing.T) {
			p, end := running(t, c.role)
			defer end()
			m := meter{"b": {p}}
			if c.other {
				m = meter{"a": {p}, "b": {p}}
			}
			_, targets := logging("a", "b")
			o := options(planned(func(p *lifecycle.Options) { p.Rounds, p.Warmup, p.Seed = 3, 1, 4 }), targets)
			o.Meter = m
			discards := 0
			targets[1] = &watched{Target: targets[1], discarding: func(context.Context) error {
				if discards++; c.ends && discards == 8 { // the last discard; each visit has two
					end()
				}
				return nil
			}}
			_, l := weighWith(t.Context(), t, o)
			var got string
			for _, f := range found(t, l, "runtime-left") {
				got += fmt.Sprintf("%s: %s\n", f.Target, f.Message)
				check.That(t, strings.HasSuffix(f.Advice, fmt.Sprintf("ps -p %d", p.Pid)), "advice %q", f.Advice)
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", got, c.want)
			}
			check.Equal(t, "discards", discards, 8)
		})
	}
}

func TestCgroupOutlivingItsSandboxesIsFound(t *testing.T) {
	_, targets := logging("a", "c")
	o := options(planned(func(p *lifecycle.Options) { p.Rounds, p.Warmup = 3, 1 }), targets)
	o.Meter = meter{}
	_, l := weighWith(t.Context(), t, o)
	f := found(t, l, "runtime-left")
	if len(f) != 1 || f[0].Target != "c" || f[0].Message != "cgroups that outlived their sandboxes: 1, of 1 of 4 visits, such as /c" {
		t.Errorf("found %+v", f)
	}
}
