package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Meter reads the processes and cgroups of a target, as the overhead instrument does.
type Meter interface {
	Read(ctx context.Context, boxes []subject.Sandbox, daemons []int, memory bool) record.Reading
	There(group string) bool
}

// companion is a process or cgroup that appeared with a target's sandboxes.
type companion struct {
	procs.ID
	group        string
	target, rule string
	visit        int
	cpu          int64 // ns, at first sight
}

// companions tracks processes and cgroups that appeared with sandboxes. Those that
// outlive their sandboxes are reported as a finding. A process belongs to the target
// during whose visit it was first seen.
type companions struct {
	meter      Meter // nil: disabled
	all        []companion
	visits     map[string]int
	throttling *cgroup.Throttling
	throttles  map[string]*throttle
}

// throttle records how CPU limits throttled a target's starts.
type throttle struct {
	finding.Throttle
	batches int
}

func newCompanions(m Meter) companions {
	return companions{meter: m, visits: map[string]int{}, throttling: cgroup.NewThrottling(), throttles: map[string]*throttle{}}
}

// start prepares for a batch of starts.
func (c *companions) start(ctx context.Context, t *turn) {
	if c.meter != nil {
		c.throttling.Begin(subject.DaemonsOf(ctx, t.Target.Session))
	}
}

// look adds the processes of a target that exist now. It is called after a batch of
// starts and after the sandboxes are removed.
func (c *companions) look(ctx context.Context, t *turn, started bool) {
	if c.meter == nil || t.Target.Gone || ctx.Err() != nil {
		return
	}
	var boxes []subject.Sandbox
	if started {
		boxes, _ = subject.SandboxesOf(ctx, t.Target.Session)
	}
	name := t.Target.Info.Name
	x := c.meter.Read(ctx, boxes, subject.DaemonsOf(ctx, t.Target.Session), false)
	var pids []int
	for i := range x.Processes {
		p := &x.Processes[i]
		pids = append(pids, p.Pid)
		id := procs.ID{Pid: p.Pid, Start: p.Start}
		if p.Role != record.RoleDaemon && !p.Ended {
			c.add(companion{ID: id, target: name, rule: p.Rule, visit: c.visits[name], cpu: p.CPU})
		}
	}
	for i := range x.Groups {
		if g := &x.Groups[i]; g.Charge != record.ChargeShared && !g.Nested {
			c.add(companion{group: g.Path, target: name, visit: c.visits[name]})
		}
	}
	if started {
		if c.throttles[name] == nil {
			c.throttles[name] = &throttle{}
		}
		c.throttles[name].batches++
		c.throttles[name].Add(c.throttling.End(pids, func(group string) bool { return attribution.Own(group, boxes) }))
	}
}

func (c *companions) add(one companion) {
	if !slices.ContainsFunc(c.all, func(o companion) bool { return o.ID == one.ID && o.group == one.group }) {
		c.all = append(c.all, one)
	}
}

// prune drops processes and cgroups that no longer exist.
func (c *companions) prune() {
	c.all = slices.DeleteFunc(c.all, func(one companion) bool {
		if one.group != "" {
			return !c.meter.There(one.group)
		}
		s, err := procs.StatOf(one.Pid)
		return err != nil || s.Start != one.Start || s.Dying
	})
}

// ending is the grace period for processes to exit after their sandbox was removed.
const ending = 5 * time.Second

// findings returns one finding for each target throttled by CPU limits, and one for
// each target with leftover processes or cgroups. Leftovers of a target's last visit
// get [ending] to exit. Older leftovers already had a whole visit.
func (c *companions) findings(ctx context.Context) (found []record.Finding) {
	for _, name := range slices.Sorted(maps.Keys(c.throttles)) {
		if t := c.throttles[name]; t.Starts > 0 {
			found = append(found, t.Of(name, t.batches))
		}
	}
	for deadline := time.Now().Add(ending); time.Now().Before(deadline); {
		c.prune()
		if len(c.all) == 0 || slices.ContainsFunc(c.all, func(one companion) bool { return one.visit < c.visits[one.target] }) || machine.Sleep(ctx, ending/100) != nil {
			break
		}
	}
	for len(c.all) > 0 {
		found = append(found, c.outlived(c.all[0].target, c.all[0].group != ""))
	}
	return found
}

// outlived removes a target's leftover processes or cgroups from c and returns a
// finding about them.
func (c *companions) outlived(target string, groups bool) record.Finding {
	const most = 3
	cpu, visits := int64(0), map[int]bool{}
	var such, names []string
	c.all = slices.DeleteFunc(c.all, func(one companion) bool {
		if one.target != target || (one.group != "") != groups {
			return false
		}
		visits[one.visit] = true
		if groups {
			names = append(names, one.group)
			return true
		}
		if now, err := one.CPU(); err == nil {
			cpu += max(now-one.cpu, 0)
		}
		now, _ := procs.StatOf(one.Pid) // the process may have called exec since
		such = page.Union(such, now.Comm+", "+one.rule)
		names = append(names, fmt.Sprint(one.Pid))
		return true
	})
	few := func(all []string) []string { return all[:min(len(all), most)] }
	f := record.Finding{Code: finding.RuntimeLeft, Level: finding.Warning, Target: target}
	of := fmt.Sprintf("outlived their sandboxes: %d, of %d of %s", len(names), len(visits), page.Amount(c.visits[target], "visit"))
	if groups {
		f.Message = "cgroups that " + of + ", such as " + strings.Join(few(names), ", ")
		f.Advice = "each costs kernel memory until it is removed: report it to the runtime; tare removes those below its own at the end"
		return f
	}
	f.Message = fmt.Sprintf("processes that %s (%s); they used %s of CPU since", of, strings.Join(few(such), "; "), finding.Brief(float64(cpu)))
	f.Advice = "their CPU and memory are not in these times, and slow down later operations: measure them with tare overhead, report them to the runtime, and end those that remain: ps -p " + strings.Join(few(names), ",")
	return f
}
