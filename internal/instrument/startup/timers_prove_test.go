//go:build prove

package startup_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/instrument/startup/starts"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// told returns copies of the lines of real logs.
func told(t *testing.T, names ...string) (all []logs.Event) {
	t.Helper()
	var sources []logs.Source
	for _, name := range names {
		text := must.Get(os.ReadFile("logs/testdata/" + name))(t)
		sources = append(sources, logs.Source{Name: name, Reader: bytes.NewReader(text)})
	}
	if _, err := logs.Read(t.Context(), sources, func(e *logs.Event) error {
		x := *e
		for _, b := range []*[]byte{&x.Level, &x.Message, &x.Program, &x.Source, &x.Subsystem, &x.Sandbox, &x.Container, &x.Request, &x.Error, &x.Command} {
			*b = bytes.Clone(*b)
		}
		all = append(all, x)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

var ids = regexp.MustCompile(`[0-9a-f]{12,64}|k[0-9]{5}`)

// again returns copies of the lines, as if another node had logged a similar start. The
// copies have new ids, and when returns their new times.
func again(all []logs.Event, n int, when func(i int, ns int64) int64) []logs.Event {
	out := make([]logs.Event, len(all))
	for i, e := range all {
		for _, b := range []*[]byte{&e.Message, &e.Sandbox, &e.Container, &e.Request} {
			*b = ids.ReplaceAllFunc(*b, func(id []byte) []byte { return append(fmt.Appendf(nil, "%04x", n), id[4:]...) })
		}
		shift := int64(n) * int64(time.Hour)
		if e.Arrived != 0 {
			e.Time += when(i, e.Arrived) - e.Arrived
			e.Arrived = when(i, e.Arrived) + shift
		} else if e.Time != 0 {
			e.Time = when(i, e.Time)
		}
		if e.Time != 0 {
			e.Time += shift
		}
		e.File += 2 * n
		out[i] = e
	}
	return out
}

// timersOf judges lines and returns the detected timers.
func timersOf(t *testing.T, all []logs.Event) (timers []string) {
	t.Helper()
	h := record.Header{Experiment: startup.Name, Plan: []byte(`{}`)}
	j := must.Get(startup.NewJudging(&h, nil))(t)
	b := starts.New(strings.Split(strings.Repeat("log ", 20), " "), func(s *record.Start, _ int) error { j.Add(s); return nil })
	for i := range all {
		must.OK(t, b.Add(&all[i]))
	}
	must.OK(t, b.Close())
	for _, target := range j.Done(&record.Record{Header: h, End: &record.End{}}).Targets {
		for _, g := range target.Gaps {
			if g.Wait != nil {
				timers = append(timers, g.Wait.Timer)
			}
		}
	}
	return timers
}

var realLogs = [][]string{
	{"cripod.kata.log", "cripod.containerd.log"}, {"one.kata.log"}, {"one.containerd.log"}, {"containerd-2.4-info.log"}, {"cri-o-1.34-info.log"}, {"published.txt"}, {"runsc-boot.txt"},
}

func TestRandomTimesRarelyLookLikeATimer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	runs, named := 0, 0
	for _, names := range realLogs {
		all, mine := told(t, names...), 0
		for range 150 {
			for _, copies := range []int{1, 5} {
				by := 0.3 * (1 + 9*random.Float64())
				var lines []logs.Event
				for n := range copies {
					mine := by * (1 + 0.02*random.NormFloat64()) // starts differ slightly
					lines = append(lines, again(all, n, func(_ int, ns int64) int64 { return all[0].Time + int64(float64(ns-all[0].Time)*mine) })...)
				}
				runs++
				if len(timersOf(t, lines)) > 0 {
					mine++
				}
			}
		}
		t.Logf("%v: %d of 300", names, mine)
		named += mine
	}
	if 100*named > runs {
		t.Errorf("%d of %d runs report a timer", named, runs)
	}
}

// places returns the positions at which a timer can be detected. Such a position is
// between two consecutive lines of the engine or the runtime within a start. Positions
// with the same key are between the same two messages.
func places(t *testing.T, all []logs.Event) (found map[string][]int, keys []string) {
	t.Helper()
	var within []record.Start
	b := starts.New([]string{"a", "b"}, func(s *record.Start, _ int) error { within = append(within, *s); return nil })
	for i := range all {
		must.OK(t, b.Add(&all[i]))
	}
	must.OK(t, b.Close())
	asked := regexp.MustCompile(`^(State|Stats|Pids|Connect|Wait)\(\) `) // requests by any client at any time
	host := func(e *logs.Event) bool {
		return !asked.Match(e.Message) && !e.Guest && e.Arrived == 0 && len(e.Sandbox) > 0 && e.Form != logs.Console && len(e.Message) > 0 && string(e.Source) != "agent-client" && string(e.Message) != "reading guest console"
	}
	found = map[string][]int{}
	for i := 1; i < len(all); i++ {
		x, y := &all[i-1], &all[i]
		inside := slices.ContainsFunc(within, func(s record.Start) bool {
			return s.Began < x.Time && y.Time < s.Ended && s.Sandbox == string(x.Sandbox)
		})
		if !inside || !host(x) || !host(y) || y.Time < x.Time || y.Time-x.Time > int64(500*time.Microsecond) || !bytes.Equal(x.Sandbox, y.Sandbox) {
			continue
		}
		key := fmt.Sprintf("%s → %s", ids.ReplaceAll(x.Message, nil), ids.ReplaceAll(y.Message, nil))
		if found[key] = append(found[key], i); len(found[key]) == 1 {
			keys = append(keys, key)
		}
	}
	return found, keys
}

func TestTimerIsDetectedIn95Percent(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	runs, named := 0, 0
	for _, names := range realLogs[:3] {
		all, mine := told(t, names...), 0
		found, keys := places(t, all)
		for range 200 {
			at := found[keys[random.IntN(len(keys))]]
			length := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second}[random.IntN(6)]
			var lines []logs.Event
			for n := range 5 {
				by, late := 1+0.02*random.NormFloat64(), int64(random.ExpFloat64()*3e5)
				lines = append(lines, again(all, n, func(i int, ns int64) int64 {
					before, exact := slices.BinarySearch(at, i)
					if exact {
						before++
					}
					return all[0].Time + int64(float64(ns-all[0].Time)*by) + int64(before)*(int64(length)+late)
				})...)
			}
			runs++
			want := strings.NewReplacer("ms", " ms", "s", " s").Replace(length.String())
			if got := timersOf(t, lines); slices.ContainsFunc(got, func(timer string) bool { return strings.Contains(timer, want) }) {
				mine++
			} else if testing.Verbose() {
				t.Logf("%v at %q is not among %q", length, ids.ReplaceAll(all[at[0]].Message, nil), got)
			}
		}
		t.Logf("%v: %d of 200, at %d places", names, mine, len(keys))
		named += mine
	}
	if 100*named < 95*runs {
		t.Errorf("found %d of %d planted timers", named, runs)
	}
}
