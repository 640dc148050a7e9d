package record

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhatALoadsClientSaysIsBelievedAsFarAsItCanBe(t *testing.T) {
	many := map[string]int64{}
	for i := range 100 {
		many[strings.Repeat("x", i)] = 1
	}
	for name, c := range map[string]struct {
		sent  Sent
		right bool
	}{
		"unsent requests, a late client, reasons": {Sent{Requests: 3, Errors: 2, Unsent: 5, Lag: 7, Failures: map[string]int64{"status 503": 2}}, true},
		"unsent, less than none":                  {Sent{Unsent: -1}, false},
		"more unsent than there can be":           {Sent{Unsent: 1 << 60}, false},
		"too early":                               {Sent{Lag: -1}, false},
		"a reason that was never":                 {Sent{Failures: map[string]int64{"a": -1}}, false},
		"a reason without an end":                 {Sent{Failures: map[string]int64{strings.Repeat("x", 1000): 1}}, false},
		"too many reasons":                        {Sent{Failures: many}, false},
	} {
		p := Point{Case: CaseLoad, Phase: PhaseLoad, Sent: &c.sent}
		if err := p.Validate(); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
		var back Point
		text, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back.Sent.Unsent != c.sent.Unsent || back.Sent.Lag != c.sent.Lag || len(back.Sent.Failures) != len(c.sent.Failures) {
			t.Errorf("%s: %v: read back as %+v", name, err, back.Sent)
		}
	}
}
