package record

import (
	"strings"
	"testing"
)

func TestImpossibleTimesNeverBecomeALatency(t *testing.T) {
	tests := map[string]struct{ sample, want string }{
		"returned before start":        {`{"start":1500,"returned":1400}`, "returned 1400 is before the start 1500"},
		"running before start":         {`{"start":1500,"running":1400}`, "running"},
		"spawned before start":         {`{"start":1500,"spawned":1400}`, "spawned"},
		"first before start":           {`{"start":1500,"first":1400}`, "first"},
		"seen before start":            {`{"start":1500,"seen":1400}`, "seen"},
		"exited before start":          {`{"start":1500,"exited":1400}`, "exited"},
		"a negative start":             {`{"start":-1}`, "start is -1 and cannot be negative"},
		"a negative stamp":             {`{"start":1500,"returned":-9223372036854775808}`, "before the start"},
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
		"more samples than lanes":      {`{"start":1500},{"lane":1,"start":1500},{"start":1500}`, "3 samples and 0 lost lanes in a batch of 2"},
		"a failure of no kind":         {`{"start":1500,"failure":{}}`, "failure without a kind"},
		"a failure in the past":        {`{"start":1500,"returned":1400,"failure":{"kind":"exit"}}`, "returned 1400"},
		"a failure before the release": {`{"returned":900,"failure":{"kind":"exit"}}`, "returned 900 is before the start 1000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + batchPrefix + "[" + test.sample + "]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Batches) != 0 || len(got.Problems) != 1 {
				t.Fatalf("it was let through: %+v", got.Batches)
			}
			if !strings.Contains(got.Problems[0].Reason, test.want) {
				t.Errorf("the reason is %q", got.Problems[0].Reason)
			}
		})
	}
}

func TestWhatCanHappenIsLetThrough(t *testing.T) {
	tests := map[string]string{
		"a lane that never started":                    `{"failure":{"kind":"interrupted"}}`,
		"a command that outlives its container's exit": `{"start":1500,"first":1600,"exited":1700,"returned":1800}`,
		"a state seen before the command returned":     `{"start":1500,"running":1600,"returned":1700}`,
		"a guest's clock far from ours":                `{"start":1500,"returned":1600,"guest":5}`,
		"a start at the very release":                  `{"start":1000,"returned":1000}`,
	}
	for name, sample := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + batchPrefix + "[" + sample + "]}\n"))
			if err != nil || len(got.Batches) != 1 {
				t.Errorf("%v, problems %v", err, got.Problems)
			}
		})
	}
}

func TestImpossibleLinesAreProblems(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"a batch of no target":         {`{"type":"batch","phase":"measure","op":"create","lanes":1}`, "without a target"},
		"a batch of no operation":      {`{"type":"batch","phase":"measure","target":"a","lanes":1}`, "without an operation"},
		"a batch of an unknown phase":  {`{"type":"batch","phase":"cooldown","target":"a","op":"rm","lanes":1}`, `phase "cooldown"`},
		"a batch of no lanes":          {`{"type":"batch","phase":"measure","target":"a","op":"rm"}`, "lanes 0"},
		"a batch of too many lanes":    {`{"type":"batch","phase":"measure","target":"a","op":"rm","lanes":10001}`, "lanes 10001"},
		"more lost than there were":    {`{"type":"batch","phase":"measure","target":"a","op":"rm","lanes":1,"lost":2}`, "2 lost lanes in a batch of 1"},
		"a negative number of lost":    {`{"type":"batch","phase":"measure","target":"a","op":"rm","lanes":1,"lost":-2}`, "lost is -2"},
		"a batch that was not let go":  {`{"type":"batch","phase":"measure","target":"a","op":"rm","lanes":1,"samples":[{"start":5}]}`, "no release"},
		"a negative round":             {`{"type":"batch","phase":"measure","target":"a","op":"rm","lanes":1,"round":-1}`, "round is -1"},
		"a target of no name":          {`{"type":"target"}`, "without a name"},
		"a share above one":            {`{"type":"node","steal":1.2}`, "steal is 1.2"},
		"a negative share":             {`{"type":"node","psi_io":-0.1}`, "psi_io is -0.1"},
		"a negative load":              {`{"type":"node","load1":-1}`, "load1"},
		"a reading before time began":  {`{"type":"node","time":-1}`, "time is -1"},
		"a finding of no code":         {`{"type":"finding"}`, "without a code"},
		"an end of no status":          {`{"type":"end"}`, "without a status"},
		"an end before the beginning":  {`{"type":"end","status":"done","elapsed":-1}`, "elapsed is -1"},
		"a negative count of failures": {`{"type":"end","status":"done","failures":-1}`, "failures is -1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + test.line + "\n"))
			if err != nil || len(got.Problems) != 1 || len(lines(got)) != 1 {
				t.Fatalf("%v, %+v", err, got)
			}
			if !strings.Contains(got.Problems[0].Reason, test.want) {
				t.Errorf("the reason is %q", got.Problems[0].Reason)
			}
		})
	}
}
