package terms

import (
	"context"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/option"
)

type cached struct{ Cache Cache }

func (c *cached) Declare(s *option.Set) { DeclareCache(s, &c.Cache, "start") }

func (c cached) MarshalJSON() ([]byte, error) { return option.Marshal(&c) }

func TestWarmIsWhatRecordsWithoutTheWordAre(t *testing.T) {
	t.Parallel()
	for given, want := range map[Cache]struct{ stored, wrong string }{
		"": {stored: "{}"}, "warm": {stored: "{}"}, "cold": {stored: `{"cache":"cold"}`}, "tepid": {wrong: "write warm or cold"},
	} {
		c := cached{given}
		err := option.Of(&c).Finish(context.Background())
		if (err != nil) != (want.wrong != "") || err != nil && !strings.Contains(err.Error(), want.wrong) {
			t.Errorf("%q: %v, want %q", given, err, want.wrong)
		}
		if text, wrong := c.MarshalJSON(); err == nil && (wrong != nil || string(text) != want.stored) {
			t.Errorf("%q is stored as %s, %v", given, text, wrong)
		}
		if told := c.Cache.Told("start"); (len(told) > 0) != (c.Cache == Cold) {
			t.Errorf("%q is told as %q", given, told)
		}
	}
}
