package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// echo is a line type declared by an instrument in another package.
type echo struct {
	Type   record.Type `json:"type"`
	Target string      `json:"target" is:"needed,label"`
	Sent   int64       `json:"sent"`
	Heard  int64       `json:"heard" is:"after=sent"`
	Hops   []hop       `json:"hops" is:"max=2"`
}

type hop struct {
	Name string `json:"name" is:"id"`
}

// Check requires an echo to have a way.
func (e *echo) Check() error {
	if len(e.Hops) == 0 {
		return errors.New("an echo without a hop")
	}
	return nil
}

func TestInstrumentDeclaresItsOwnLines(t *testing.T) {
	t.Parallel()
	lines := must.Get(record.NewLines(record.Own[echo]("echo")))(t)
	var file bytes.Buffer
	w := lines.NewWriter(&file)
	good := echo{Target: "runc", Sent: 5, Heard: 7, Hops: []hop{{"a"}, {"b"}}}
	for _, line := range []any{record.Header{Experiment: "echo"}, good, &good, record.End{Status: "done"}} {
		must.OK(t, w.Write(line))
	}
	text := file.String()
	bad := `{"type":"echo","target":"a","sent":5,"heard":4,"hops":[{"name":"a"}]}
{"type":"echo","hops":[{"name":"a"}]}
{"type":"echo","target":"a","hops":[{"name":"a"},{"name":"a"}]}
{"type":"echo","target":"a","hops":[{},{},{}]}
{"type":"echo","target":"a"}
`
	header, rest, _ := strings.Cut(text, "\n")
	got := must.Get(lines.Read(strings.NewReader(header + "\n" + bad + rest)))(t)
	good.Type = "echo"
	if all := record.All[echo](got); len(all) != 2 || !reflect.DeepEqual(*all[0], good) || got.End == nil {
		t.Errorf("got %+v", all)
	}
	// A record under construction contains the added lines.
	made := new(record.Record)
	for _, line := range []any{record.Header{Experiment: "echo"}, good, &good, record.Finding{Code: "drift"}, &record.End{Status: "done"}} {
		made.Add(line)
	}
	if all := record.All[echo](made); len(all) != 2 || *made.End != (record.End{Type: record.TypeEnd, Status: "done"}) || made.Findings[0].Type != record.TypeFinding || made.Header.Experiment != "echo" {
		t.Errorf("got %+v", made)
	}
	for i, want := range []string{"echo: heard 4 is before sent 5", "echo: target is missing", `hops: duplicate name "a"`, "more than 2 hops in one echo", "an echo without a hop"} {
		if i >= len(got.Problems) || !strings.Contains(got.Problems[i].Reason, want) {
			t.Fatalf("problems %v have no %q", got.Problems, want)
		}
	}

	// Readers and writers without the declaration ignore it.
	plain, err := record.Read(strings.NewReader(text))
	if err != nil || len(plain.Problems) != 0 || len(record.All[echo](plain)) != 0 || plain.End == nil {
		t.Errorf("%v, %+v", err, plain)
	}
	check.Error(t, record.NewWriter(&file).Write(good), "record_test.echo is not a line of a record; the lines are header, target")
}
