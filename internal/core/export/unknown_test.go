package export

import (
	"encoding/json"
	"strings"
	"testing"

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
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
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
