package startup

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// taking are steps of so many ms: calls, and what lies between them.
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

func TestPhasesOfLogsStandBesideEachOther(t *testing.T) {
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
		t.Errorf("one alone is beside %+v", s.Table)
	}
}

func TestStepsStandBesideThoseOfOtherTargets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets []Target
		want    string // rows, with a cell for each target
	}{
		"one target is beside nobody": {[]Target{{Target: "a", Table: taking("runc run", 1)}}, ""},
		"nor is one without calls":    {[]Target{{Target: "a", Table: taking("runc run", 1)}, {Target: "b", Table: taking("docker", 1)}}, ""},
		"by verbs, where runtimes have names of their own": {
			[]Target{{Target: "a", Table: taking("docker", 9, "kata-runtime create", 1, "docker", 2, "kata-runtime state", 3)}, {Target: "b", Table: taking("docker", 8, "runc create", 4, "docker", 5)}},
			"docker 9.00 ms 8.00 ms|create 1.00 ms 4.00 ms|docker, after create 2.00 ms 5.00 ms|kata-runtime state 3.00 ms –|sum 6.00 ms 4.00 ms"},
		"a call that only the second makes stands where it makes it": {
			[]Target{{Target: "a", Table: taking("kata create", 1, "docker", 2, "kata start", 3)}, {Target: "b", Table: taking("kata create", 4, "docker", 5, "kata state", 6, "docker", 7, "kata start", 8)}},
			"kata create 1.00 ms 4.00 ms|docker, after create 2.00 ms 5.00 ms|kata state – 6.00 ms|docker, after state – 7.00 ms|kata start 3.00 ms 8.00 ms|sum 6.00 ms 30.0 ms"},
		"the second call of a name is another row": {
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
				rows = rows[:len(rows)-2] // wall and credits, which these have none of
			}
			if got := strings.Join(rows, "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
