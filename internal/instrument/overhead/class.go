package overhead

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// A recommendation is multiplied by a margin, then rounded up to a multiple of a step.
const (
	classMargin = 1.1
	classMemory = 4 << 20 // bytes
	classCPU    = 10      // milli-CPUs
)

// A phase has no CPU figure if it is shorter than briefPhase or has fewer samples than
// fewTicks.
const (
	briefPhase = time.Second
	fewTicks   = 10
)

// needs is the overhead per sandbox that a phase needed: the maximum over its rounds.
type needs struct {
	cell     *Cell
	rounds   int
	round    int     // the round of the maximum of memory, from 1
	memory   float64 // bytes
	own      float64 // the workload's part of the guest's memory
	open     open    // of the phase with any number of sandboxes
	cpu      float64 // milli-CPUs
	cpuKnown bool
	brief    bool     // too short for a CPU figure
	kept     bool     // memory includes memory that the guest kept from an earlier hold phase
	guest    float64  // milli-CPUs of a VMM including the guest's work; not in cpu
	parts    []string // by role, as text
	cpuParts []string
}

// held returns the memory including what may be unexplained.
func (n needs) held() float64 { return n.memory + n.open.most() }

// open is the unexplained memory of a round, in bytes per sandbox.
type open struct{ residual, uncertainty float64 }

// most returns the upper bound of the unexplained memory that may belong to the sandbox.
func (o open) most() float64 { return max(o.residual+o.uncertainty, 0) }

// openIn returns the unexplained memory of a phase, over all rounds and numbers of
// sandboxes.
func (j *Judgement) openIn(target, phase string) (out open) {
	first := true
	for _, c := range j.cells() {
		if c.Target != target || c.Phase != phase || !c.Ledger.Complete {
			continue
		}
		for _, p := range c.counts {
			n := float64(max(p.Sandboxes, 1))
			if o := (open{float64(p.Ledger.Residual) / n, float64(p.Ledger.Uncertainty) / n}); first || o.overrules(out) {
				out, first = o, false
			}
		}
	}
	return out
}

// overrules reports whether o takes precedence over another round of the same phase. A
// round whose residual exceeds its uncertainty precedes one whose residual does not. If
// there are several, the largest upper bound counts. Among the other rounds, the
// smallest upper bound counts, because it limits what all of them have in common.
func (o open) overrules(other open) bool {
	beyond := o.residual > o.uncertainty
	if beyond != (other.residual > other.uncertainty) {
		return beyond
	}
	return beyond == (o.most() > other.most())
}

func (o open) String() string {
	return fmt.Sprintf("%s ±%s per sandbox are unexplained", finding.Bytes(o.residual), finding.Bytes(o.uncertainty))
}

// classes recommends an overhead for every target with sandboxes.
func (j *Judgement) classes() {
	for t := range ledger.Each(j.Targets) {
		if t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		if c, ok := j.recommend(t); ok {
			j.Classes = append(j.Classes, c)
		}
	}
}

// recommend returns the maximum that any phase needed in any round. Kubernetes adds
// overhead.podFixed to the pod's requests and to the limits of the pod's cgroup. The
// workload's own memory is already in the requests and limits of the containers.
func (j *Judgement) recommend(t *record.Target) (RuntimeClass, bool) {
	c := RuntimeClass{Target: t.Name, Handler: handler(t.Name)}
	var all []needs
	rounds := 0
	for _, cell := range j.cells() {
		if cell.Target == t.Name && cell.Ledger.Complete && cell.Sandboxes > 0 {
			n := j.needs(cell)
			all, rounds = append(all, n), rounds+n.rounds
		}
	}
	those := func(are func(needs) bool) []needs {
		return slices.DeleteFunc(slices.Clone(all), func(n needs) bool { return !are(n) })
	}
	kept, counted := those(func(n needs) bool { return n.kept }), those(func(n needs) bool { return !n.kept })
	if len(counted) == 0 {
		return c, false
	}
	most, held := greatest(counted, func(n needs) float64 { return n.memory }), greatest(counted, needs.held)
	maxCPU := greatest(those(func(n needs) bool { return !n.brief && n.cpuKnown }), func(n needs) float64 { return n.cpu })
	c.Memory = int64(math.Ceil(most.memory*classMargin/classMemory)) * classMemory
	c.CPU = int64(math.Ceil(maxCPU.cpu/classCPU)) * classCPU
	if c.Memory == 0 && c.CPU == 0 {
		return c, false
	}
	c.Open = held.held() > float64(c.Memory)
	missing, out := j.missing(t.Name), outside(&most.cell.Ledger, false)
	rule := lines{fmt.Sprintf("memory: the maximum of a sandbox beyond its workload in %s, %s in %s, round %d (%s), plus 10 %%, rounded up to a multiple of 4Mi; without reclaimable page cache and the daemon's memory",
		ofAll(rounds), finding.Bytes(most.memory), most.cell.where(), most.round, strings.Join(most.parts, " + "))}
	rule.addIf(c.Open, fmt.Sprintf("memory: not shown to be enough: %s in phase %s, and may belong to the sandbox", held.open, held.cell.Phase))
	rule.addIf(most.own > 0, finding.Bytes(most.own)+" of the guest's memory belongs to the workload and is left out")
	rule.addIf(finding.IsEmulated(j.Record, t), "the VM is emulated: the VMM's memory includes the emulator's (TCG caches translated code, up to 1 GiB), and its CPU includes emulation; both are lower with KVM")
	rule.addIf(len(kept) > 0, "memory: not taken from "+wheres(kept)+": the guest keeps memory from an earlier hold phase")
	rule.addCPU(&c, &maxCPU, those(func(n needs) bool { return n.brief }), those(func(n needs) bool { return n.guest > 0 && !n.brief }))
	rule.addIf(missing != nil, "phases "+strings.Join(missing, ", ")+" have no figures and are not included")
	rule.addIf(out != nil, "podFixed does not include memory charged outside the pod's cgroup; its limit is not enforced on "+strings.Join(out, ", "))
	if slices.Contains(noKubelets, t.Kind) {
		c.Not = fmt.Sprintf("no RuntimeClass: a kubelet does not run %s; use cri+ENGINE/%s", t.Name, c.Handler)
	} else {
		c.YAML = yamlOf(&c, t.Kubernetes)
	}
	rule.addIf(c.Not != "", c.Not)
	c.Rule = rule
	return c, true
}

// greatest returns the phase with the largest value, or an empty phase if there is none.
func greatest(all []needs, of func(needs) float64) needs {
	if len(all) == 0 {
		return needs{cell: new(Cell)}
	}
	return slices.MaxFunc(all, func(a, b needs) int { return cmp.Compare(of(a), of(b)) })
}

// wheres names phases with their numbers of sandboxes.
func wheres(all []needs) string {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.cell.where()
	}
	return strings.Join(names, ", ")
}

// noKubelets are the kinds of targets that no kubelet uses. They do not run pods, or do
// not use an engine that a kubelet supports.
var noKubelets = []string{"oci", "docker", "podman", "isula", "command"}

// ofAll describes the number of phases behind a maximum. A phase counts once per round.
func ofAll(phases int) string {
	if phases == 1 {
		return "one phase of one round"
	}
	return fmt.Sprintf("any of %d phases over all rounds", phases)
}

// addCPU explains the recommended CPU. It names the phases that were too short, and the
// guests whose CPU time was not separable.
func (l *lines) addCPU(c *RuntimeClass, most *needs, brief, guests []needs) {
	separable := len(brief)+len(guests) == 0
	l.addIf(c.CPU > 0, fmt.Sprintf("cpu: the maximum of a sandbox beyond its workload, %.1fm in %s (%s), rounded up to a multiple of 10m", most.cpu, most.cell.where(), strings.Join(most.cpuParts, " + ")))
	l.addIf(c.CPU == 0 && separable, "cpu: no usage beyond the workload was measured")
	l.addIf(c.CPU == 0 && !separable, "cpu: no usage was measured where it is separable, so none is recommended")
	l.addIf(len(guests) > 0, "cpu: the VMM's is left out in "+wheres(guests)+": its vCPU threads could not be identified, so it includes the guest's work")
	l.addIf(len(brief) > 0, fmt.Sprintf("cpu: not taken from %s, shorter than %v or with fewer than %d samples", wheres(brief), briefPhase, fewTicks))
}

// missing returns the planned phases of a target that have no complete figures.
func (j *Judgement) missing(target string) []string {
	var out []string
	for _, s := range j.planned() {
		if c := j.at(target, s); s.Sandboxes > 0 && (c == nil || !c.Ledger.Complete) {
			out = append(out, fmt.Sprintf("%s with %s", s.Phase, page.Sandboxes(s.Sandboxes)))
		}
	}
	return out
}

// brief reports whether any measured round was too short for a CPU figure. The begin
// and the end of such a phase outweigh its load.
func (c *Cell) brief() bool {
	return slices.ContainsFunc(c.closed, func(p *ledger.Phase) bool {
		b, s := p.Begin, p.Series
		return b == nil || s == nil || len(s.Times) < fewTicks || p.End.Time-b.Time < int64(briefPhase)
	})
}

// needs evaluates a phase over all rounds: a limit has to hold in each of them.
func (j *Judgement) needs(c *Cell) needs {
	out := needs{cell: c, rounds: len(c.counts), cpuKnown: true, brief: c.brief(), open: j.openIn(c.Target, c.Phase)}
	for i, p := range c.counts {
		one := j.needsIn(c, p)
		if i == 0 || one.memory > out.memory {
			out.round, out.memory, out.own, out.parts = p.Visit.Round+1, one.memory, one.own, one.parts
		}
		if one.cpu > out.cpu {
			out.cpu, out.cpuParts = one.cpu, one.cpuParts
		}
		out.kept = out.kept || one.kept
		out.cpuKnown, out.guest = out.cpuKnown && one.cpuKnown, max(out.guest, one.guest)
	}
	return out
}

// notOverhead are the roles outside a pod's overhead: the workload, the vCPUs that run
// it, the daemon, and memory that belongs to no sandbox.
var notOverhead = []record.Role{record.RoleWorkload, record.RoleVCPU, record.RoleDaemon, record.RoleKernelNode, record.RoleCache, record.RoleOthers}

// needsIn evaluates one round of a phase. The daemon's usage is neither in the pod's
// cgroup nor freed with the pod, so it is not part of the overhead. Negative rows come
// from noise or from memory that a daemon freed; they do not reduce the overhead.
func (j *Judgement) needsIn(c *Cell, p *ledger.Phase) needs {
	n, l := float64(c.Sandboxes), &p.Ledger
	var idle *ledger.Ledger
	if before := j.idleBefore(p); before != nil {
		idle = &before.Ledger
	} else if cell := j.at(c.Target, Step{string(PhaseIdle), c.Sandboxes}); cell != nil {
		idle = &cell.Ledger
	}
	out := needs{cpuKnown: true}
	guest, kind := guestRole(l), kindOf(c.Phase)
	out.kept = guest != "" && heldBefore(p)
	for _, r := range l.Rows {
		if slices.Contains(notOverhead, r.Role) {
			continue
		}
		amount := max(float64(r.Memory.Held())/n, 0)
		if idle != nil && r.Role == record.RoleRuntime && kind != PhaseIdle {
			// The exec that started the load ends with the load.
			was := rowOf(idle, r.Role)
			amount = min(amount, max(float64(was.Memory.Held())/n, 0))
			r.CPU, r.CPUKnown = min(r.CPU, was.CPU), was.CPUKnown || was.Processes == 0
		}
		if r.Role == guest {
			out.own = j.own(c, l, idle, amount)
			amount -= out.own
		}
		if amount > 0 {
			out.parts = append(out.parts, fmt.Sprintf("%s %s", r.Role, finding.Bytes(amount)))
		}
		out.memory += amount
		out.addCPU(&r, n, c.load("expected"), l, kind)
	}
	return out
}

// heldBefore reports whether an earlier phase held memory in these sandboxes. The guest's
// kernel has freed that memory, but has not returned it to the node.
func heldBefore(p *ledger.Phase) bool {
	for q := range ledger.Each(p.Visit.Phases) {
		if q == p {
			return false
		}
		if kindOf(q.Name) == PhaseHold {
			return true
		}
	}
	return false
}

// own returns the workload's part of the guest's memory. For a hold phase it is the
// requested amount. For other loads it is the growth since idle, up to the limit of
// the container. Without a limit, memory that the guest keeps belongs to the sandbox:
// an ordinary container would have freed its cache.
func (j *Judgement) own(c *Cell, l, idle *ledger.Ledger, guest float64) float64 {
	switch kind := kindOf(c.Phase); {
	case kind == PhaseHold:
		p, _ := ParsePhase(c.Phase)
		return min(float64(p.Bytes), guest)
	case kind == PhaseFio && idle != nil && j.Plan.Limits.Memory > 0:
		before := float64(rowOf(idle, guestRole(l)).Memory.Held()) / float64(c.Sandboxes)
		return min(max(guest-before, 0), float64(j.Plan.Limits.Memory))
	}
	return 0
}

// addCPU adds the CPU usage of a role. If the workload has no processes of its own,
// gVisor's sentry runs it. The CPUs requested by a spinning load are then subtracted,
// because they belong to the workload.
func (n *needs) addCPU(r *ledger.Row, sandboxes, requested float64, l *ledger.Ledger, kind PhaseKind) {
	if !r.CPUKnown {
		n.cpuKnown = n.cpuKnown && r.Processes == 0
		return
	}
	milli := 1000 * r.CPU / sandboxes
	if r.GuestCPU {
		n.guest += max(milli, 0)
		return
	}
	if r.Role == record.RoleSentry && kind == PhaseSpin && rowOf(l, record.RoleWorkload).Processes == 0 {
		milli = max(milli-1000*requested, 0)
	}
	if milli > 0 {
		n.cpu += milli
		n.cpuParts = append(n.cpuParts, fmt.Sprintf("%s %.1fm", r.Role, milli))
	}
}

// outside returns the roles with more than outsideBound charged outside the pod's
// group, and the groups. A runtime's exec exists only as long as its load, so it
// counts in idle phases only.
func outside(l *ledger.Ledger, idle bool) []string {
	var out []string
	for _, p := range l.Places {
		if (idle || p.Role != record.RoleRuntime) && p.Charge != record.ChargePod && p.Memory > outsideBound {
			where := p.Path
			if p.Count > 1 {
				where = fmt.Sprintf("%s and %d more", p.Path, p.Count-1)
			}
			out = append(out, fmt.Sprintf("%s %s in %s", p.Role, finding.Bytes(p.Memory), where))
		}
	}
	return out
}
