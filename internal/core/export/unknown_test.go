package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestOfAMachineThatIsNotKnownNothingIsClaimed(t *testing.T) {
	t.Parallel()
	rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle"}}
	for name, write := range map[string]func(*strings.Builder) error{
		"benchfmt":    func(b *strings.Builder) error { return Benchfmt(b, []Document{{Record: rec}}) },
		"OpenMetrics": func(b *strings.Builder) error { return OpenMetrics(b, []Document{{Record: rec}}) },
		"the head":    func(b *strings.Builder) error { return json.NewEncoder(b).Encode(headOf(rec)) },
	} {
		var text strings.Builder
		must.OK(t, write(&text))
		for _, claim := range []string{"linux", "0001", `"started"`, "-62135596800", "started_timestamp_seconds{"} {
			if strings.Contains(text.String(), claim) {
				t.Errorf("%s says %q:\n%s", name, claim, text.String())
			}
		}
	}
	rec.Header.Environment.Kernel = "6.1.0"
	if about(rec).Get("os.type") != "linux" {
		t.Error("a Linux kernel is no Linux")
	}
}

func TestAnUpperBoundIsNoValueInAnyFormat(t *testing.T) {
	t.Parallel()
	// What each says of 5 ns at most; "": nothing.
	says := map[string]string{
		"json": `"at_most": true`, "csv": "1,5,,,,,,,,,,,,at most", "parquet": "at most",
		"openmetrics":  `_upper_seconds{target="runc"} 5e-09`,
		"otlp-metrics": `"tare.app.first-answer.upper"`,
		"junit":        `<property name="hi" value="5">`,
	}
	for _, f := range Formats {
		for _, better := range []figure.Direction{figure.Less, figure.More} {
			for _, atMost := range []bool{true, false} {
				bound := figure.Figure{Experiment: "app", Quantity: "first-answer", Unit: figure.Nanoseconds, Better: better, Labels: figure.Of("target", "runc"),
					Rounds: []figure.Round{{Value: 5}}, Estimate: figure.Exactly(5), AtMost: atMost}
				if atMost {
					bound.Verdict = figure.AtMost
				}
				var out bytes.Buffer
				must.OK(t, f.Write(&out, []Document{{Record: &record.Record{Header: record.Header{RunID: "a", Experiment: "app"}}, Figures: []figure.Figure{bound}}}))
				text := out.String()
				if want := says[f.Name]; want != "" && strings.Contains(text, want) != atMost || want == "" && atMost && strings.Contains(text, "runc") {
					t.Errorf("%s of a bound (%v) says\n%s", f.Name, atMost, text)
				}
				for _, value := range []string{`answer_seconds{`, `"tare.app.first-answer"`, `<property name="value"`, "<skipped"} {
					if atMost && strings.Contains(text, value) {
						t.Errorf("%s of a bound says %s:\n%s", f.Name, value, text)
					}
				}
			}
		}
	}
}
