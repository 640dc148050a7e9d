package judge_test

import (
	"reflect"
	"testing"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

const mib = 1 << 20

// staffed gives the first target a daemon that grows by 2 MiB a container and
// a shim of 5 MiB for each; a round's number adds to the daemon's CPU time.
func staffed(lanes int, change func(b *record.Batch)) func(*written) {
	return func(w *written) {
		w.plan.Lanes = []int{lanes}
		w.batch = func(b *record.Batch) {
			if b.Target != "oci0" {
				return
			}
			n := int64(lanes)
			before := int64(100+b.Round) * mib
			b.Roles = []record.Usage{
				{Role: record.RoleShim, After: lanes, CPU: 8 * ms * n, PSSPeak: 5 * mib * n, PSSAfter: 5 * mib * n},
				{Role: record.RoleDaemon, Before: 2, After: 2, CPU: (20*ms + int64(b.Round)*ms) * n, PSSBefore: before, PSSPeak: before + 4*mib*n, PSSAfter: before + 2*mib*n},
			}
			if change != nil {
				change(b)
			}
		}
	}
}

func rolesOf(t *testing.T, rec *record.Record) []judge.RoleFacts {
	t.Helper()
	l := judged(t, rec)
	if other := l.Tables[0].Rows[0].Cells[1].Roles; other != nil {
		t.Errorf("a target without processes of its own has %+v", other)
	}
	return l.Tables[0].Rows[0].Cells[0].Roles
}

func TestWhatAnEngineUsedIsGivenForEachOperationAndContainer(t *testing.T) {
	for _, lanes := range []int{1, 20} {
		got := rolesOf(t, write(staffed(lanes, nil)))
		n := float64(lanes)
		want := []judge.RoleFacts{
			{Role: record.RoleDaemon, N: 10, Before: 2, After: 2, CPU: cpu(24.5 * ms), PSSBefore: 104.5 * mib, PSSPeak: (104.5 + 4*n) * mib,
				PSSAfter: (104.5 + 2*n) * mib, Growth: 2 * mib, Each: (104.5 + 2*n) / 2 * mib},
			{Role: record.RoleShim, N: 10, After: n, CPU: cpu(8 * ms), PSSPeak: 5 * n * mib, PSSAfter: 5 * n * mib, Growth: 5 * mib, Each: 5 * mib},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d lanes: got  %+v\nwant %+v", lanes, got, want)
		}
	}
}

func cpu(ns float64) *float64 { return &ns }

func TestMemoryThatIsGivenBackIsAGrowthBelowNone(t *testing.T) {
	got := rolesOf(t, write(staffed(4, func(b *record.Batch) {
		b.Roles = []record.Usage{{Role: record.RoleShim, Before: 4, PSSBefore: 20 * mib, PSSPeak: 20 * mib}}
	})))
	if want := (judge.RoleFacts{Role: record.RoleShim, N: 10, Before: 4, PSSBefore: 20 * mib, PSSPeak: 20 * mib, Growth: -5 * mib, Each: 5 * mib}); len(got) != 1 || got[0] != want { // and no CPU time
		t.Errorf("got %+v", got)
	}
}

func TestABatchWithAFailureSaysNothingOfAnOperationsCost(t *testing.T) {
	got := rolesOf(t, write(func(w *written) {
		staffed(4, nil)(w)
		w.sample = func(_ string, _ subject.Op, round int, s *record.Sample) {
			if round >= 7 && s.Lane == 3 {
				s.Failure = &record.Failure{Kind: record.FailError, Detail: "no"}
			}
		}
	}))
	if len(got) != 2 || got[0].N != 7 || *got[0].CPU != 23*ms {
		t.Errorf("got %+v", got)
	}
}

func TestARoundThatLacksAProcessDoesNotCount(t *testing.T) {
	lacking := func(rounds int) *record.Record {
		return write(staffed(4, func(b *record.Batch) {
			if b.Round < rounds {
				b.Roles[1].Unread, b.Roles[1].PSSAfter, b.Roles[1].CPU = 1, 0, 0
			}
		}))
	}
	if got := rolesOf(t, lacking(3))[0]; got.N != 7 || got.Unread != 3 || *got.CPU != 26*ms || got.Growth != 2*mib {
		t.Errorf("got %+v", got)
	}
	if got := rolesOf(t, lacking(10))[0]; got != (judge.RoleFacts{Role: record.RoleDaemon, Unread: 10}) {
		t.Errorf("got %+v", got)
	}
}

func TestRolesThatAreNotKnownComeLastAndTheUnreadAreCounted(t *testing.T) {
	got := rolesOf(t, write(staffed(1, func(b *record.Batch) {
		b.Roles = append([]record.Usage{{Role: "zebra", Before: 1, After: 1}, {Role: "ant", Before: 1, After: 1}, {Role: record.RoleVMM, After: 1, Unread: 1}}, b.Roles...)
	})))
	var names []record.Role
	unread := 0
	for _, r := range got {
		names = append(names, r.Role)
		unread += r.Unread
	}
	want := []record.Role{record.RoleDaemon, record.RoleShim, record.RoleVMM, "ant", "zebra"}
	if len(names) != len(want) || unread != 10 {
		t.Fatalf("got %v, %d unread", names, unread)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}
