package cli

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/node/machine"
)

func TestACPULimitOfTaresOwnIsSaidBeforeAndAfterARun(t *testing.T) {
	t.Parallel()
	limit := machine.CPULimit{CPUs: 0.05, Group: "/ci/job", Lift: "echo max > /sys/fs/cgroup/ci/job/cpu.max", Periods: 10, Throttled: 2, Held: 1e9}
	with := func(change func(*machine.CPULimit)) machine.CPULimit {
		l := limit
		change(&l)
		return l
	}
	for _, tt := range []struct {
		name          string
		was, is       machine.CPULimit
		before, after string // parts of the messages; "" for no finding
	}{
		{"no limit", machine.CPULimit{}, machine.CPULimit{}, "", ""},
		{"a limit of more CPUs than there are", with(func(l *machine.CPULimit) { l.CPUs = 1e4 }), limit, "", ""},
		{"a limit that was not reached", limit, with(func(l *machine.CPULimit) { l.Periods = 99 }), "/ci/job may use no more than 0.05 CPUs", ""},
		{"a limit that held the run back", limit, with(func(l *machine.CPULimit) { l.Periods, l.Throttled, l.Held = 85, 64, 3_500_000_000 }),
			"/ci/job may use no more than 0.05 CPUs", "was throttled in 62 of 75 periods of the run, for 2.5s in all"},
		{"tare was moved", limit, with(func(l *machine.CPULimit) { l.Group, l.Throttled = "/", 99 }), "/ci/job", ""},
	} {
		now := tt.was
		before, after := ownLimit(func() (machine.CPULimit, bool) { return now, now.CPUs > 0 })
		now = tt.is
		for when, x := range map[string]struct {
			want string
			code string
		}{"before": {tt.before, finding.OwnLimit}, "after": {tt.after, finding.OwnThrottled}} {
			got := before
			if when == "after" {
				got = after()
			}
			if len(got) != min(len(x.want), 1) || x.want != "" && (got[0].Code != x.code || !strings.Contains(got[0].Message, x.want) || !strings.Contains(got[0].Advice, limit.Lift)) {
				t.Errorf("%s, %s: %+v", tt.name, when, got)
			}
		}
	}
}
