package lifecycle_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const mib = 1 << 20

// staffed adds a daemon and shims to the first target. The daemon grows by 2 MiB per
// container, and each container has a shim of 5 MiB. The round number is added to the
// daemon's CPU time.
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

// rolesOf returns the figures of each role.
func rolesOf(t *testing.T, rec *record.Record) (roles []figure.Set) {
	t.Helper()
	for _, part := range judged(t, rec).All.Parts("role") {
		if part.Get("role") != "" {
			roles = append(roles, part)
			check.Equal(t, "a target with its own processes", part.Get("target"), "oci0")
		}
	}
	return roles
}

// rounds returns the counted rounds of a role.
func rounds(role figure.Set) int { return role.Of("role-processes", "when", "after").N }

func TestEngineUsageIsPerOperationAndContainer(t *testing.T) {
	for _, lanes := range []int{1, 20} {
		got := rolesOf(t, write(staffed(lanes, nil)))
		n := float64(lanes)
		want := [][8]float64{
			{2, 2, 24.5 * ms, 104.5 * mib, (104.5 + 4*n) * mib, (104.5 + 2*n) * mib, 2 * mib, (104.5 + 2*n) / 2 * mib},
			{0, n, 8 * ms, 0, 5 * n * mib, 5 * n * mib, 5 * mib, 5 * mib},
		}
		for i, role := range []record.Role{record.RoleDaemon, record.RoleShim} {
			if got[i].Get("role") != string(role) || rounds(got[i]) != 10 || !same(used(got[i]), want[i]) {
				t.Errorf("%d lanes, %s: got  %v of %d rounds\nwant %v", lanes, role, used(got[i]), rounds(got[i]), want[i])
			}
		}
	}
}

// used returns a role's figures in table order; unknown ones are NaN.
func used(role figure.Set) (out [8]float64) {
	for i, f := range role {
		out[i] = math.NaN()
		if f.Estimate.Known() {
			out[i] = f.Estimate.Value
		}
	}
	return out
}

// same compares figures and treats unknown ones as equal.
func same(a, b [8]float64) bool {
	for i := range a {
		if a[i] != b[i] && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			return false
		}
	}
	return true
}

func TestReleasedMemoryIsNegativeGrowth(t *testing.T) {
	got := rolesOf(t, write(staffed(4, func(b *record.Batch) {
		b.Roles = []record.Usage{{Role: record.RoleShim, Before: 4, PSSBefore: 20 * mib, PSSPeak: 20 * mib}}
	})))
	if want := [8]float64{4, 0, math.NaN(), 20 * mib, 20 * mib, 0, -5 * mib, 5 * mib}; len(got) != 1 || rounds(got[0]) != 10 || !same(used(got[0]), want) { // the CPU time is unknown
		t.Errorf("got %+v", got)
	}
}

func TestCPUTimeIsUnknownIfAProcessExited(t *testing.T) {
	for name, u := range map[string]record.Usage{
		"most processes exited":              {Before: 4, After: 1, Ended: 3, CPU: 1 * ms},
		"process replaced":                   {Before: 4, After: 4, Ended: 1, CPU: 1 * ms},
		"fewer processes in an older record": {Before: 4, After: 1, CPU: 1 * ms},
	} {
		u.Role = record.RoleShim
		got := rolesOf(t, write(staffed(4, func(b *record.Batch) { b.Roles = []record.Usage{u} })))
		if len(got) != 1 || rounds(got[0]) != 10 || got[0][2].Known() || !got[0][1].Known() {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestFailedBatchHasNoOperationCost(t *testing.T) {
	got := rolesOf(t, write(func(w *written) {
		staffed(4, nil)(w)
		w.sample = func(_ string, _ subject.Op, round int, s *record.Sample) {
			if round >= 7 && s.Lane == 3 {
				s.Failure = &record.Failure{Kind: record.FailError, Detail: "no"}
			}
		}
	}))
	if len(got) != 2 || rounds(got[0]) != 7 || used(got[0])[2] != 23*ms {
		t.Errorf("got %+v", got)
	}
}

func TestRoundWithMissingProcessIsNotCounted(t *testing.T) {
	lacking := func(rounds int) *record.Record {
		return write(staffed(4, func(b *record.Batch) {
			if b.Round < rounds {
				b.Roles[1].Unread, b.Roles[1].PSSAfter, b.Roles[1].CPU = 1, 0, 0
			}
		}))
	}
	if got := rolesOf(t, lacking(3))[0]; rounds(got) != 7 || used(got)[2] != 26*ms || used(got)[6] != 2*mib {
		t.Errorf("got %+v", got)
	}
	if got := rolesOf(t, lacking(10))[0]; got.Get("role") != string(record.RoleDaemon) || rounds(got) != 0 || got[0].Known() {
		t.Errorf("got %+v", got)
	}
}

func TestUnknownRolesAreLastAndUnreadAreCounted(t *testing.T) {
	rec := write(staffed(1, func(b *record.Batch) {
		b.Roles = append([]record.Usage{{Role: "zebra", Before: 1, After: 1}, {Role: "ant", Before: 1, After: 1}, {Role: record.RoleVMM, After: 1, Unread: 1}}, b.Roles...)
	}))
	var names []record.Role
	for _, role := range rolesOf(t, rec) {
		names = append(names, record.Role(role.Get("role")))
	}
	want := []record.Role{record.RoleDaemon, record.RoleShim, record.RoleVMM, "ant", "zebra"}
	check.That(t, slices.Equal(names, want), "got %v; want %v", names, want)
	var out bytes.Buffer
	must.OK(t, page.Write(&out, "md", []*page.Page{judged(t, rec).Page(page.Options{})}, page.Options{}))
	check.Contains(t, "notes", out.String(), "oci0 run, vmm: processes that could not be read 10; of what it used 0 rounds count")
}

// asked returns a record of the host and two runtimes. All polls of the host's workload
// fail, except the last one. The workloads of the runtimes are ready at the first poll.
func asked() *run {
	r := pair(1)
	for i := range r.rec.Batches {
		b := &r.rec.Batches[i]
		for k := range b.Samples {
			s := &b.Samples[k]
			if b.Op != string(subject.Run) || s.Failure != nil {
				continue
			}
			s.Ready, s.Polls, s.Request = s.First+300_000_000, 1, 400_000
			if b.Target == r.rec.Targets[0].Name {
				s.Polls, s.Unready = 400, s.Ready-800_000-int64(b.Round)*10_000
			}
		}
	}
	return r
}

func TestReadyTimeHasAResolution(t *testing.T) {
	t.Parallel()
	_, j := asked().judged(t)
	found := map[string]int{}
	for _, f := range j.Figures() {
		if f.Labels.Get("op") == string(subject.Run) {
			found[f.Quantity+f.Labels.Get("stamp")+f.Labels.Get("quantile")]++
		}
	}
	for quantity, n := range map[string]int{"time-toready": 3, "ready-resolutionp50": 1, "ready-resolutionmax": 1, "first-request": 3} {
		check.Equal(t, quantity, found[quantity], n)
	}
	text := rendered(t, asked(), "text", page.Options{Width: 120, Verbose: true})
	for _, want := range []string{" known to ", " at worst ", "first request 400 µs", "at most in 10 of 10: ready when first asked"} {
		check.That(t, strings.Contains(strings.Join(strings.Fields(text), " "), strings.TrimSpace(want)), "no %q in:\n%s", want, text)
	}
	for line := range strings.Lines(text) {
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "ready "); is && (strings.Count(at, "≤ ") != 2 || strings.Contains(at, "≤ 300 ms")) {
			t.Errorf("only the host's ready time may be an upper bound: %s", line)
		}
	}
}
