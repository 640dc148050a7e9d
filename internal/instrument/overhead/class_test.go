package overhead

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestRuntimeClassIsValid(t *testing.T) {
	t.Parallel()
	o := weighed(t, oversee(func(w *oversight) {
		w.kinds, w.names = []string{"host", "floor", "containerd"}, []string{"host", "floor", "cri+containerd/Kata_qemu"}
		w.box = func(string, string, int, int) box {
			return box{vm: true, memory: 120 * mi, shim: 20 * mi, cpu: 0.1, shimCPU: 0.2412}
		}
	}))
	want := "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: \"kata-qemu\"\nhandler: \"kata-qemu\"\noverhead:\n  podFixed:\n    memory: \"156Mi\"\n    cpu: \"250m\"\n"
	check.That(t, len(o.Classes) == 1 && o.Classes[0].YAML == want, "%+v", o.Classes)
}

// at changes the readings at the end of a phase.
func at(phase string, change func(r *record.Reading)) func(*record.Reading) {
	return func(r *record.Reading) {
		if r.Phase == phase && r.Moment == record.MomentEnd {
			change(r)
		}
	}
}

func TestCheckCountsOnlyMeasuredPhases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		reading func(*record.Reading)
		change  func(*record.Record)
		missing string
	}{
		{"all phases measured", nil, nil, ""},
		{"skipped phase", nil, without(func(r record.Reading) bool { return r.Phase == "1G" }), "phase 1G with 1 sandbox was not measured"},
		{"phase failed in all rounds", at("1G", failed), nil, "phase 1G with 1 sandbox was not measured"},
		{"phase failed in some rounds", at("1G", func(r *record.Reading) {
			if r.Round == 0 {
				failed(r)
			}
		}), nil, ""},
		{"phase read incompletely", at("idle", func(r *record.Reading) { r.Problems.Denied = 1 }), nil, "phase idle with 1 sandbox was not measured"},
		{"count not reached", nil, without(func(r record.Reading) bool { return r.Sandboxes == 5 }), "phase idle with 5 sandboxes was not measured"},
		{"target without figures", nil, func(rec *record.Record) { rec.Readings, rec.Series = nil, nil }, "phase 1G with 1 sandbox was not measured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases, w.plan.Sandboxes = []string{"idle", "1G"}, []int{1, 5}
				w.plan.Check = &PodFixed{CPU: 250, Memory: 160 * mi}
				w.reading, w.change = tt.reading, tt.change
			}))
			must.That(t, len(o.Check) == 1 && len(o.Check[0].Phases) == 3 &&
				o.Check[0].Answer == map[bool]Answer{true: Enough, false: NotShown}[tt.missing == ""], "%+v", o.Check)
			for _, p := range o.Check[0].Phases {
				check.That(t, p.Rounds != 0 || p.MemoryAnswer == NotShown && p.CPUAnswer == NotShown, "%+v", p)
			}
			f := found(o, "check-not-shown")
			check.That(t, (f == nil) == (tt.missing == "") && (f == nil || strings.Contains(f.Message, tt.missing)), "%+v", f)
		})
	}
}

func TestRuntimeClassOverhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		change  func(*oversight)
		memory  int64 // MiB
		cpu     int64
		rule    string
		unknown bool   // no CPU figure for a phase
		enough  Answer // for a declared CPU of 90m
	}{
		{"maximum of all phases", nil, 44, 80, "cpu: the maximum of a sandbox beyond its workload, 80.0m in phase 1G", false, Enough},
		{"daemon memory is excluded", readings(func(r *record.Reading) {
			r.Processes = append(r.Processes, record.Process{Pid: 9, Start: 1, Name: "containerd", Role: record.RoleDaemon, Rule: "made up", Lane: -1, Read: true, PSSAnon: 50*mi + int64(r.Sandboxes)*100*mi})
		}), 44, 80, "without reclaimable page cache and the daemon's memory", false, Enough},
		{"failed phase is named", readings(at("1G", failed)), 24, 20, "phases 1G with 1 sandbox have no figures and are not included", true, NotShown},
		{"skipped phase is named", func(w *oversight) { w.change = without(func(r record.Reading) bool { return r.Phase == "1G" }) }, 24, 20, "phases 1G with 1 sandbox have no figures and are not included", true, NotShown},
		{"CPU of a phase with few samples is ignored", func(w *oversight) {
			w.series = func(s *record.Series) {
				if s.Phase == "1G" {
					s.Times = s.Times[:9]
				}
			}
		}, 44, 20, "cpu: not taken from phase 1G with 1 sandbox, shorter than 1s or with fewer than 10 samples", true, NotShown},
		{"CPU of a short phase is ignored", func(w *oversight) {
			w.change = func(rec *record.Record) {
				var begin int64
				for i := range rec.Readings {
					r := &rec.Readings[i]
					if r.Phase == "1G" && r.Moment == record.MomentBegin {
						begin = r.Time
					} else if r.Phase == "1G" {
						r.Time = begin + sec - 1
					}
				}
				for i := range rec.Series {
					if s := &rec.Series[i]; s.Phase == "1G" {
						first := s.Times[0] - sec // start of the phase
						for k := range s.Times {
							s.Times[k] = first + int64(k)
						}
					}
				}
			}
		}, 44, 20, "cpu: not taken from phase 1G with 1 sandbox", true, NotShown},
		{"no phase is long enough", func(w *oversight) { w.series = func(s *record.Series) { s.Times = nil } }, 44, 0, "so none is recommended\ncpu: not taken from phase idle", true, NotShown},
		{"unknown vCPUs include the guest's work", readings(func(r *record.Reading) {
			for i := range r.Processes {
				if p := &r.Processes[i]; p.Role == record.RoleVMM {
					p.VCPU, p.Groups = 0, p.Groups[:1]
				}
			}
		}), 44, 80, "includes the guest's work", true, NotShown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases = []string{"idle", "1G"}
				w.plan.Check = &PodFixed{CPU: 90, Memory: 160 * mi}
				w.box = func(_, phase string, _, _ int) box {
					if phase == "idle" {
						return box{vm: true, memory: 10 * mi, shim: 10 * mi, cpu: 0.4, shimCPU: 0.02}
					}
					return box{vm: true, memory: 29 * mi, shim: 10 * mi, cpu: 0.4, shimCPU: 0.08}
				}
				if tt.change != nil {
					tt.change(w)
				}
			}))
			must.That(t, len(o.Classes) == 1, "%+v", o.Classes)
			c := o.Classes[0]
			check.That(t, c.Memory == tt.memory*mi && c.CPU == tt.cpu && strings.Contains(strings.Join(c.Rule, "\n"), tt.rule),
				"%d MiB, %dm\n%s", c.Memory/mi, c.CPU, strings.Join(c.Rule, "\n"))
			unknown := slices.ContainsFunc(o.Check[0].Phases, func(p CheckPhase) bool { return p.CPUAnswer == NotShown })
			check.That(t, unknown == tt.unknown && o.Check[0].Answer == tt.enough && (found(o, "check-not-enough") != nil) == (tt.enough == NotEnough) &&
				(found(o, "check-not-shown") != nil) == (tt.enough == NotShown), "%+v", o.Check[0])
		})
	}
}

func TestMemoryKeptByGuestIsNotOverhead(t *testing.T) {
	t.Parallel()
	weigh := func(vm bool, check int64) *Judgement {
		return weighed(t, oversee(func(w *oversight) {
			w.plan.Phases, w.plan.Check = []string{"idle", "hold 64Mi", "spin 0.5cpu"}, &PodFixed{CPU: 250, Memory: check}
			w.box = func(_, phase string, _, _ int) box {
				if phase == "idle" {
					return box{vm: vm, memory: 100 * mi, shim: 10 * mi}
				}
				return box{vm: vm, memory: 164 * mi, shim: 10 * mi, cpu: 0.5}
			}
		}))
	}
	rule := "memory: not taken from phase spin 0.5cpu with 1 sandbox"
	for name, tt := range map[string]struct {
		vm     bool
		check  int64
		memory int64 // MiB
		answer Answer
	}{
		"VM, check below the kept memory":           {true, 160 * mi, 124, NotShown},
		"VM, check above the kept memory":           {true, 200 * mi, 124, Enough},
		"container, memory freed with the workload": {false, 160 * mi, 12, Enough},
	} {
		o := weigh(tt.vm, tt.check)
		c := o.Classes[0]
		check.That(t, c.Memory == tt.memory*mi && o.Check[0].Answer == tt.answer && strings.Contains(strings.Join(c.Rule, "\n"), rule) == tt.vm,
			"%s: %d MiB, %+v\n%s", name, c.Memory/mi, o.Check[0], strings.Join(c.Rule, "\n"))
	}
}

func TestOverheadIsTheMaximumOfAllRounds(t *testing.T) {
	t.Parallel()
	o := weighed(t, oversee(func(w *oversight) {
		w.plan.Check = &PodFixed{CPU: 10, Memory: 50 * mi}
		w.box = func(_, _ string, _, round int) box {
			if round == 1 {
				return box{memory: 2 * mi, shim: 100 * mi, shimCPU: 0.02}
			}
			return box{memory: 2 * mi, shim: 5 * mi}
		}
	}))
	if c := o.Classes[0]; c.Memory != 112*mi || c.CPU != 20 || !strings.Contains(c.Rule[0], "in any of 3 phases over all rounds, 100.0 MiB in phase idle with 1 sandbox, round 2") {
		t.Errorf("%d MiB, %dm: %q", c.Memory/mi, c.CPU, c.Rule)
	}
	if c := o.Check[0]; c.Answer != NotEnough || c.Phases[0].Memory != 100*mi || c.Phases[0].MemoryAnswer != NotEnough || c.Phases[0].CPUAnswer != NotEnough || c.Phases[0].Rounds != 3 {
		t.Errorf("%+v", c)
	}
}

// A new role counts as the sandbox's unless it is excluded here.
func TestEverySandboxRoleIsInTheOverhead(t *testing.T) {
	t.Parallel()
	left := []record.Role{record.RoleWorkload, record.RoleVCPU, record.RoleDaemon, record.RoleKernelNode, record.RoleCache, record.RoleOthers}
	for _, role := range ledger.Roles {
		row := ledger.Row{Role: role, Processes: 1, Memory: ledger.Memory{Anon: 8 * mi}, CPU: 0.111, CPUKnown: true}
		p := &ledger.Phase{Visit: &ledger.Visit{}, Ledger: ledger.Ledger{Rows: []ledger.Row{row}}}
		got := new(Judgement).needsIn(&Cell{Step: Step{"idle", 2}}, p)
		memory, cpu := 4*float64(mi), 55.5
		if slices.Contains(left, role) {
			memory, cpu = 0, 0
		}
		check.That(t, got.memory == memory && got.cpu == cpu, "%s: %v bytes and %vm, want %v and %v", role, got.memory, got.cpu, memory, cpu)
	}
}

// An exec uses CPU only during its load. A spinning helper uses CPU in the idle phase as
// well.
func TestRuntimeHelperCPUIsInTheCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase  string // phase in which it spins; "" for all
		before bool   // existed before the sandboxes
		answer Answer
		cpu    int64
	}{
		"helper left behind":                   {"", false, NotEnough, 120},
		"helper left behind by another target": {"", true, Enough, 0},
		"exec of a load":                       {"1G", false, Enough, 0},
	} {
		o := weighed(t, oversee(func(w *oversight) {
			w.plan.Phases, w.plan.Check = []string{"idle", "1G"}, &PodFixed{CPU: 10, Memory: 8 * mi}
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, kernel: mi} }
			spent := int64(0)
			w.reading = func(r *record.Reading) {
				if r.Moment == record.MomentEnd && (c.phase == "" || c.phase == r.Phase) {
					spent += 1.11e9 // during the ten seconds of a phase
				}
				if r.Sandboxes > 0 || c.before {
					r.Processes = append(r.Processes, record.Process{Pid: 9, Start: 5, Name: "sh", Role: record.RoleRuntime, Rule: "left behind by a runtime's command", Lane: -1, CPU: spent, Read: true})
				}
			}
		}))
		check.That(t, o.Check[0].Answer == c.answer && o.Classes[0].CPU == c.cpu,
			"%s: %s, %dm: %q", name, o.Check[0].Answer, o.Classes[0].CPU, o.Classes[0].Rule)
	}
}

func TestUnbalancedLedgerConfirmsNoOverhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		extra int64 // node memory outside all roles, in bytes
		drift int64 // change in node memory over a visit, in bytes
		check int64 // MiB
		says  string
	}{
		"balanced ledger":                          {0, 0, 8, ""},
		"memory without a role":                    {50 * mi, 0, 8, "50.0 MiB ±0 KiB per sandbox are unexplained"},
		"podFixed itself":                          {50 * mi, 0, 4, "50.0 MiB ±0 KiB per sandbox are unexplained"},
		"residual within the noise":                {212 * mi, 350 * mi, 160, "212.0 MiB ±"},
		"overhead includes the unexplained memory": {50 * mi, 0, 160, ""},
	} {
		o := weighed(t, oversee(func(w *oversight) {
			w.kinds, w.names = []string{"cri"}, []string{"cri+containerd/runc"}
			w.plan.Rounds, w.plan.Check = 1, &PodFixed{CPU: 10, Memory: c.check * mi}
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, kernel: mi, extra: c.extra} }
			w.reading = func(r *record.Reading) {
				if r.Moment == record.MomentAfter {
					r.Host.Free -= c.drift
				}
			}
		}))
		want := Enough
		if c.says != "" {
			want = NotShown
		}
		check.That(t, o.Check[0].Answer == want, "%s: %+v", name, o.Check[0])
		f := found(o, "check-not-shown")
		check.That(t, (f != nil) == (c.says != "") && (f == nil || strings.Contains(f.Message, c.says) && f.Level == finding.Error), "%s: %+v", name, f)
		var yaml strings.Builder
		must.OK(t, writeClasses(&yaml, o))
		// The answer must not list a target both as enough and as not enough.
		answer := strings.Join(o.answer(), "")
		check.That(t, strings.HasSuffix(answer, ": "+string(want)+".") && strings.Contains(answer, ", not shown to be enough: ") == (c.says != ""), "%s: %s", name, answer)
		open := "# memory: not shown to be enough: "
		check.That(t, strings.Contains(yaml.String(), open) == (c.extra > 0), "%s:\n%s", name, yaml.String())
	}
}

// With more sandboxes, the node's noise per sandbox is smaller.
func TestLargerCountBalancesThePhase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts []int
		answer Answer
	}{"one sandbox": {[]int{1}, NotShown}, "one and twenty sandboxes": {[]int{1, 20}, Enough}} {
		o := weighed(t, oversee(func(w *oversight) {
			w.plan.Sandboxes, w.plan.Rounds, w.plan.Check = c.counts, 1, &PodFixed{CPU: 10, Memory: 16 * mi}
			w.reading = func(r *record.Reading) {
				if r.Moment == record.MomentAfter {
					r.Host.Free -= 100 * mi
				}
			}
		}))
		check.That(t, o.Check[0].Answer == c.answer, "%s: %+v", name, o.Check[0])
	}
}

func TestUnexplainedMemoryIsTheMinimumOfAllRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds []open
		most   float64
	}{
		"narrowest of three wide rounds":    {[]open{{0, 5}, {-1, 3}, {2, 9}}, 2},
		"round within the noise is ignored": {[]open{{0, 1}, {0, 400}}, 1},
		"round beyond the noise counts":     {[]open{{0, 1}, {50, 4}, {40, 2}}, 54},
		"negative memory is zero":           {[]open{{-9, 2}}, 0},
	} {
		got := c.rounds[0]
		for _, o := range c.rounds[1:] {
			if o.overrules(got) {
				got = o
			}
		}
		check.Equal(t, name, got.most(), c.most)
	}
}

func TestPhaseWithEndedSandboxHasNoFigures(t *testing.T) {
	t.Parallel()
	gone := func(r *record.Reading) {
		r.Processes = slices.DeleteFunc(r.Processes, func(p record.Process) bool { return p.Role == record.RoleVMM })
	}
	for name, c := range map[string]struct {
		change func(*record.Reading)
		oom    int64
		says   string
	}{
		"killed VMM": {gone, 0, "1 of 1 sandboxes exited while they were measured: vmm main (process 1000) is gone"},
		"zombie VMM": {func(r *record.Reading) {
			r.Processes[0].Ended, r.Processes[0].PSSAnon = true, 0
		}, 0, "vmm main (process 1000) is gone"},
		"VMM killed by the OOM killer": {gone, 2, "is gone; the kernel killed 2 processes of the node for lack of memory in that time"},
	} {
		o := weighed(t, oversee(func(w *oversight) {
			w.kinds, w.names = []string{"cri"}, []string{"cri+containerd/kata"}
			w.plan.Check = &PodFixed{CPU: 250, Memory: 160 * mi}
			w.box = func(string, string, int, int) box { return box{vm: true, memory: 10 * mi, shim: 7 * mi} }
			w.reading = func(r *record.Reading) {
				r.Host.OOMKills = new(int64)
				if r.Phase != "" && r.Moment == record.MomentEnd {
					*r.Host.OOMKills = c.oom
					c.change(r)
				}
			}
		}))
		f := found(o, finding.Failed)
		check.That(t, o.Failed == o.Total && o.Classes == nil && o.Check[0].Answer == NotShown && f != nil && f.Level == finding.Error &&
			strings.Contains(f.Message, c.says), "%s: failed %d of %d, %+v, %s: %+v", name, o.Failed, o.Total, o.Classes, o.Check[0].Answer, f)
		all := o.Figures()
		check.That(t, !figure.Find(all, "memory", "phase", "idle").Known() && figure.Find(all, "ended").Value == 1, "%s: %+v", name, figure.Find(all, "ended"))
	}
}

func TestEmulatedVMIsReportedWithItsOverhead(t *testing.T) {
	t.Parallel()
	for _, emulated := range []bool{false, true} {
		o := weighed(t, oversee(func(w *oversight) {
			w.kinds, w.names = []string{"cri"}, []string{"cri+containerd/kata"}
			w.change = func(rec *record.Record) {
				if emulated {
					rec.Findings = []record.Finding{{Code: finding.Emulated, Level: finding.Warning, Target: "cri+containerd/kata", Message: "its VM is emulated"}}
				}
			}
		}))
		if got := strings.Contains(strings.Join(o.Classes[0].Rule, "\n"), "TCG caches translated code"); got != emulated {
			t.Errorf("emulated %v: %q", emulated, o.Classes[0].Rule)
		}
	}
}
