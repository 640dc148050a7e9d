package startup

import (
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestRepeatedIdleGapIsATimer(t *testing.T) {
	const ms = time.Millisecond
	gaps := func(cpu, others int64, after string, all ...time.Duration) (out []*record.Gap) {
		for _, took := range all {
			out = append(out, &record.Gap{Began: 1e9, Ended: 1e9 + int64(took), CPU: cpu, Others: others, After: after, Before: "b", In: "docker"})
		}
		return out
	}
	for name, c := range map[string]struct {
		gaps []*record.Gap
		want string
	}{
		"poll in every start":                             {gaps(0, 0, "a", 100*ms, 101*ms, 100*ms), "100 ms poll"},
		"1 s gap in both starts":                          {gaps(-1, 0, "New client", 1001820*time.Microsecond, 1001177*time.Microsecond), "1 s timer"},
		"1 s gap with gRPC in the log is gRPC's back-off": {gaps(-1, 0, "grpc dial failed", 1001*ms, 1002*ms), "gRPC dial, first back-off (1 s)"},
		"DNS query without an answer":                     {gaps(-1, 0, "lookup registry", 5001*ms, 5004*ms), "DNS, no answer (5 s)"},
		"grace period of a stop":                          {gaps(0, 0, "runc kill ended", 10001*ms, 10004*ms), "stop grace (10 s)"},
		"two of three starts":                             {gaps(0, 0, "a", 500*ms, 501*ms, 740*ms), "500 ms timer"},
		"one start is chance":                             {gaps(0, 0, "a", 500*ms), ""},
		"two of five starts are chance":                   {gaps(0, 0, "a", 500*ms, 501*ms, 510*ms, 530*ms, 570*ms), ""},
		"length that is not a timer's":                    {gaps(0, 0, "a", 700*ms, 700*ms, 701*ms), ""},
		"a timer never fires early":                       {gaps(0, 0, "a", 498*ms, 497*ms), ""},
		"a timer is not always late":                      {gaps(0, 0, "a", 508*ms, 509*ms), ""},
		"gap with 5 % CPU time is not a wait":             {gaps(int64(50*ms), 0, "a", 1000*ms, 1001*ms), ""},
		"gap with lines of others is not a wait":          {gaps(-1, 732, "New client", 1001*ms, 1001*ms), ""},
		"reseeding has no fixed length":                   {gaps(-1, 0, "resume vm", 348*ms, 348*ms), ""},
		"impossibly long gap is ignored":                  {[]*record.Gap{{Began: -1 << 62, Ended: 1 << 62}, {Began: -1 << 62, Ended: 1 << 62}}, ""},
	} {
		got := ""
		if w := waited(c.gaps); w != nil {
			got = w.Timer
		}
		check.Equal(t, name, got, c.want)
	}
	workload := gaps(0, 0, "a", 500*ms, 500*ms)
	workload[0].In, workload[1].In = "workload sleep", "workload sleep"
	if w := waited(workload); w != nil {
		t.Errorf("timer in the workload: %+v", w)
	}
}

func TestTimerEvidence(t *testing.T) {
	all := []*record.Gap{{Ended: 501e6, CPU: 2e5, After: strings.Repeat("é\x1b\n", 1e6), Before: "b"}, {Ended: 502e6, CPU: 1e5, After: "a", Before: "b"}}
	w := waited(all)
	if w == nil || len(w.Why) > 1000 || strings.ContainsAny(w.Why, "\x1b\n") {
		t.Fatalf("%+v", w)
	}
	for _, want := range []string{"501.0 ms to 502.0 ms, 2 of 2 times", `to "b"; nominal 500ms, a round number; CPU used meanwhile: 0.2 ms`} {
		check.Contains(t, "Why", w.Why, want)
	}
}

// taking returns calls and the gaps between them as steps. The arguments are pairs of a
// name and a duration in ms.
func taking(all ...any) (steps []Step) {
	for i := 0; i < len(all); i += 2 {
		s := Step{Name: all[i].(string), Kind: record.KindEngine}
		if strings.Contains(s.Name, " ") {
			s.Kind = record.KindCall
		}
		s.Took.Estimate = figure.Exactly(1e6 * float64(all[i+1].(int)))
		steps = append(steps, s)
	}
	return steps
}

func TestLogPhasesAreComparedAcrossTargets(t *testing.T) {
	t.Parallel()
	phases := func(steps []Step) []Step {
		for i := range steps {
			steps[i].Kind = record.KindPhase
		}
		return steps
	}
	all := []Target{{Target: "plain", Phases: phases(taking("VM begun → VMM launched", 1, "VMM answers → VM started", 2))},
		{Target: "template", Phases: phases(taking("VM begun → VMM launched", 3))}, {Target: "live", Phases: taking("docker", 4)}}
	s := phasesBeside(&Judgement{Targets: all})
	if s == nil || len(s.Table.Columns) != 3 || len(s.Table.Rows) != 2 || s.Table.Rows[1][0].Head != "VMM answers → VM started" || s.Table.Rows[1][2].Head != "–" {
		t.Errorf("%+v", s)
	}
	if s := phasesBeside(&Judgement{Targets: all[1:]}); s != nil {
		t.Errorf("a single target is compared: %+v", s.Table)
	}
}

func TestStepsAreComparedAcrossTargets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets []Target
		want    string // rows with one cell per target
	}{
		"single target is not compared":        {[]Target{{Target: "a", Table: taking("runc run", 1)}}, ""},
		"target without calls is not compared": {[]Target{{Target: "a", Table: taking("runc run", 1)}, {Target: "b", Table: taking("docker", 1)}}, ""},
		"runtimes with different names are matched by verb": {
			[]Target{{Target: "a", Table: taking("docker", 9, "kata-runtime create", 1, "docker", 2, "kata-runtime state", 3)}, {Target: "b", Table: taking("docker", 8, "runc create", 4, "docker", 5)}},
			"docker 9.00 ms 8.00 ms|create 1.00 ms 4.00 ms|docker, after create 2.00 ms 5.00 ms|kata-runtime state 3.00 ms –|sum 6.00 ms 4.00 ms"},
		"call of one target has its own row in order": {
			[]Target{{Target: "a", Table: taking("kata create", 1, "docker", 2, "kata start", 3)}, {Target: "b", Table: taking("kata create", 4, "docker", 5, "kata state", 6, "docker", 7, "kata start", 8)}},
			"kata create 1.00 ms 4.00 ms|docker, after create 2.00 ms 5.00 ms|kata state – 6.00 ms|docker, after state – 7.00 ms|kata start 3.00 ms 8.00 ms|sum 6.00 ms 30.0 ms"},
		"second call of a name has its own row": {
			[]Target{{Target: "a", Table: taking("kata state", 1, "docker", 2, "kata state", 3, "docker", 4)}, {Target: "b", Table: taking("kata state", 5, "cri", 6)}},
			"kata state 1.00 ms 5.00 ms|engine, after state 2.00 ms 6.00 ms|kata state (2) 3.00 ms –|docker, after state (2) 4.00 ms –|sum 6.00 ms 5.00 ms"},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []string
			if s := stepsBeside(&Judgement{Targets: c.targets}); s != nil {
				for _, row := range s.Table.Rows {
					words := make([]string, len(row))
					for i := range row {
						words[i] = row[i].Head
					}
					rows = append(rows, strings.Join(words, " "))
				}
				rows = rows[:len(rows)-2] // no wall time and engine time here
			}
			check.Equal(t, "rows", strings.Join(rows, "|"), c.want)
		})
	}
}
