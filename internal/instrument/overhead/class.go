package overhead

import (
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

// What a recommendation is rounded to.
const (
	classMargin = 1.1
	classMemory = 4 << 20 // bytes
	classCPU    = 10      // milli-CPUs
)

// A phase that is shorter, or has fewer ticks, says nothing of CPU.
const (
	briefPhase = time.Second
	fewTicks   = 10
)

// needs is the most that a phase needed of a pod's overhead in any round, per
// sandbox.
type needs struct {
	where    string // phase and sandboxes
	rounds   int
	round    int     // of memory, from 1
	memory   float64 // bytes
	own      float64 // of the guest's memory, the workload's own
	open     open    // of the phase at any count
	cpu      float64 // milli-CPUs
	cpuKnown bool
	brief    bool     // too short for its CPU to be taken
	kept     bool     // memory has in it what the guest keeps of an earlier phase that held some
	guest    float64  // milli-CPUs of a VMM with the guest's own work in them, not in cpu
	parts    []string // by role, in words
	cpuParts []string
}

// open is what the books of a round leave unexplained, bytes a sandbox.
type open struct{ residual, uncertainty float64 }

// most is the upper bound of what the sandbox may have taken of it.
func (o open) most() float64 { return max(o.residual+o.uncertainty, 0) }

// openIn is what a phase leaves unexplained in all rounds and counts of sandboxes.
func (j *judging) openIn(target, phase string) (out open) {
	first := true
	for i := range j.Tables {
		c := j.Tables[i].of(target)
		if j.Tables[i].Phase != phase || c == nil || !c.Ledger.Complete {
			continue
		}
		for _, p := range c.counts {
			n := float64(max(p.phase.Sandboxes, 1))
			if o := (open{float64(p.ledger.Residual) / n, float64(p.ledger.Uncertainty) / n}); first || o.overrules(out) {
				out, first = o, false
			}
		}
	}
	return out
}

// overrules reports whether o decides where both are rounds of one phase. A residual beyond
// its uncertainty counts in any round, the largest of several. What every round has is at
// most the smallest upper bound.
func (o open) overrules(other open) bool {
	beyond := o.residual > o.uncertainty
	if beyond != (other.residual > other.uncertainty) {
		return beyond
	}
	return beyond == (o.most() > other.most())
}

func (o open) String() string {
	return fmt.Sprintf("%s ±%s a sandbox are unexplained", finding.Bytes(o.residual), finding.Bytes(o.uncertainty))
}

// classes recommends an overhead for every target that has sandboxes.
func (j *judging) classes() {
	for i := range j.Targets {
		t := &j.Targets[i]
		if t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		if c, ok := j.class(t); ok {
			j.Classes = append(j.Classes, c)
		}
	}
}

// class takes the largest of what the phases need in any of their rounds. Kubernetes adds
// overhead.podFixed to what the scheduler counts for a pod and to the limits of
// the pod's cgroup; the workload's own memory is in the containers' requests and
// limits already.
func (j *judging) class(t *record.Target) (RuntimeClass, bool) {
	c := RuntimeClass{Target: t.Name, Handler: handler(t.Name)}
	var most, maxCPU needs
	var unexplained string
	held := 0.0 // bytes, with what is unexplained
	var charged *Cell
	all := 0
	var brief, guests, kept []string
	for i := range j.Tables {
		table := &j.Tables[i]
		cell := j.at(t.Name, step{table.Phase, table.Sandboxes})
		if cell == nil || !cell.Ledger.Complete || table.Sandboxes == 0 {
			continue
		}
		n := j.needs(table, cell)
		all += n.rounds
		if most := n.memory + n.open.most(); !n.kept && most > held {
			held, unexplained = most, fmt.Sprintf("%s in phase %s", n.open, table.Phase)
		}
		switch {
		case n.kept:
			kept = append(kept, n.where)
		case charged == nil || n.memory > most.memory:
			most, charged = n, cell
		}
		switch {
		case n.brief:
			brief = append(brief, n.where)
		case n.cpuKnown && n.cpu > maxCPU.cpu:
			maxCPU = n
		}
		if n.guest > 0 && !n.brief {
			guests = append(guests, n.where)
		}
	}
	if charged == nil {
		return c, false
	}
	c.Memory = int64(math.Ceil(most.memory*classMargin/classMemory)) * classMemory
	c.CPU = int64(math.Ceil(maxCPU.cpu/classCPU)) * classCPU
	if c.Memory == 0 && c.CPU == 0 {
		return c, false
	}
	c.Rule = append(c.Rule, fmt.Sprintf("memory: the most that a sandbox took beyond its workload in %s, %s in %s, round %d (%s), and 10 %%, rounded up to a multiple of 4Mi; page cache gives way and is left out, and the daemon's memory is no pod's",
		ofAll(all), finding.Bytes(most.memory), most.where, most.round, strings.Join(most.parts, " + ")))
	if c.Open = held > float64(c.Memory); c.Open {
		c.Rule = append(c.Rule, fmt.Sprintf("memory: not shown to be enough: %s, and may be its own", unexplained))
	}
	if most.own > 0 {
		c.Rule = append(c.Rule, fmt.Sprintf("of the guest's memory %s is the workload's own, and left out", finding.Bytes(most.own)))
	}
	if finding.IsEmulated(j.Record, t) {
		c.Rule = append(c.Rule, "the VM is emulated: its VMM's memory has the emulator's own in it (TCG keeps the code that it translates, up to 1 GiB), and its CPU is the emulator's; both are less with KVM")
	}
	if kept != nil {
		c.Rule = append(c.Rule, "memory: not taken from "+strings.Join(kept, ", ")+": the guest keeps what a phase before held in it")
	}
	c.Rule = append(c.Rule, cpuRule(&c, &maxCPU, brief, guests)...)
	if missing := j.missing(t.Name); missing != nil {
		c.Rule = append(c.Rule, "phases "+strings.Join(missing, ", ")+" gave no figures and are not in it")
	}
	if out := outside(&charged.Ledger, false); len(out) > 0 {
		c.Rule = append(c.Rule, "podFixed does not contain what is charged outside of the pod's cgroup; its limit is not enforced on "+strings.Join(out, ", "))
	}
	if slices.Contains(noKubelets, t.Kind) {
		c.Not = fmt.Sprintf("no RuntimeClass: %s is not what a kubelet runs; use cri+ENGINE/%s", t.Name, c.Handler)
		c.Rule = append(c.Rule, c.Not)
		return c, true
	}
	c.YAML = yamlOf(&c, t.Kubernetes)
	return c, true
}

// noKubelets are the kinds of targets that no kubelet runs: they have neither its pods nor
// its engines.
var noKubelets = []string{"oci", "docker", "podman", "isula", "command"}

// ofAll says of how many phases something is the most; each round of one counts.
func ofAll(phases int) string {
	if phases == 1 {
		return "one phase of one round"
	}
	return fmt.Sprintf("any of %d phases, those of all rounds counted", phases)
}

// cpuRule says where the CPU of an overhead comes from, and in which phases and of
// which guests it could not be told.
func cpuRule(c *RuntimeClass, most *needs, brief, guests []string) (rule []string) {
	switch {
	case c.CPU > 0:
		rule = append(rule, fmt.Sprintf("cpu: the most that a sandbox used beside its workload, %.1fm in %s (%s), rounded up to a multiple of 10m", most.cpu, most.where, strings.Join(most.cpuParts, " + ")))
	case brief == nil && guests == nil:
		rule = append(rule, "cpu: none was seen beside the workload's")
	default:
		rule = append(rule, "cpu: none was seen in the phases and roles that could tell, and none is recommended")
	}
	if guests != nil {
		rule = append(rule, "cpu: the VMM's is left out in "+strings.Join(guests, ", ")+": its vCPU threads could not be told apart, and the guest's own work is in it")
	}
	if brief != nil {
		rule = append(rule, fmt.Sprintf("cpu: not taken from %s, which lasted under %v or had fewer than %d ticks", strings.Join(brief, ", "), briefPhase, fewTicks))
	}
	return rule
}

// missing are the planned phases of a target without figures that count.
func (j *judging) missing(target string) []string {
	var out []string
	for _, s := range j.planned() {
		if c := j.at(target, s); s.n > 0 && (c == nil || !c.Ledger.Complete) {
			out = append(out, fmt.Sprintf("%s with %s", s.name, page.Sandboxes(s.n)))
		}
	}
	return out
}

// brief says of a phase that the CPU time in it is that of its begin and end more
// than of its load: any of its rounds with figures was too short.
func (c *Cell) brief() bool {
	return slices.ContainsFunc(c.closed, func(p *closedPhase) bool {
		b, s := p.phase.Begin, p.phase.Series
		return b == nil || s == nil || len(s.Times) < fewTicks || p.phase.End.Time-b.Time < int64(briefPhase)
	})
}

// needs weighs a phase in all its rounds: a limit has to hold in each of them.
func (j *judging) needs(t *Table, c *Cell) needs {
	out := needs{where: phaseWith(t.Phase, t.Sandboxes), rounds: len(c.counts), cpuKnown: true, brief: c.brief(), open: j.openIn(c.Target, t.Phase)}
	for i, p := range c.counts {
		one := j.needsIn(t, c, p)
		if i == 0 || one.memory > out.memory {
			out.round, out.memory, out.own, out.parts = p.visit.Round+1, one.memory, one.own, one.parts
		}
		if one.cpu > out.cpu {
			out.cpu, out.cpuParts = one.cpu, one.cpuParts
		}
		out.kept = out.kept || one.kept
		out.cpuKnown, out.guest = out.cpuKnown && one.cpuKnown, max(out.guest, one.guest)
	}
	return out
}

// phaseWith names a phase with so many sandboxes in a sentence.
func phaseWith(phase string, sandboxes int) string {
	return fmt.Sprintf("phase %s with %s", phase, page.Sandboxes(sandboxes))
}

// notOverhead are the roles that are no part of a pod's overhead: the workload and what
// runs it in a guest, the daemon, and what is not the sandbox's.
var notOverhead = []record.Role{record.RoleWorkload, record.RoleVCPU, record.RoleDaemon, record.RoleKernelNode, record.RoleCache, record.RoleOthers}

// needsIn weighs one round of a phase. What a daemon took is neither in the pod's
// cgroup nor freed with the pod: it is the system's, and no pod's overhead. Negative
// rows, noise or memory that a daemon gave back, do not make a sandbox cheaper.
func (j *judging) needsIn(t *Table, c *Cell, p *closedPhase) needs {
	n, l := float64(t.Sandboxes), &p.ledger
	var idle *ledger.Ledger
	if before := j.idleBefore(p); before != nil {
		idle = &before.ledger
	} else if cell := j.idleOf(c.Target, t.Sandboxes); cell != nil {
		idle = &cell.Ledger
	}
	out := needs{cpuKnown: true}
	guest, kind := guestRole(l), kindOf(t.Phase)
	out.kept = guest != "" && p.heldBefore()
	for _, r := range l.Rows {
		if slices.Contains(notOverhead, r.Role) {
			continue
		}
		amount := max(float64(r.Memory.Held())/n, 0)
		if idle != nil && r.Role == record.RoleRuntime && kind != PhaseIdle {
			// The exec that brought the load in goes with the load.
			was := rowOf(idle, r.Role)
			amount = min(amount, max(float64(was.Memory.Held())/n, 0))
			r.CPU, r.CPUKnown = min(r.CPU, was.CPU), was.CPUKnown || was.Processes == 0
		}
		if r.Role == guest {
			out.own = j.own(t, l, idle, amount)
			amount -= out.own
		}
		if amount > 0 {
			out.parts = append(out.parts, fmt.Sprintf("%s %s", r.Role, finding.Bytes(amount)))
		}
		out.memory += amount
		out.addCPU(&r, n, c.Expected, l, kind)
	}
	return out
}

// heldBefore says whether the probe held memory in these sandboxes before the phase.
// A guest's kernel has that back, and the node does not.
func (p *closedPhase) heldBefore() bool {
	for i := range p.visit.Phases {
		q := &p.visit.Phases[i]
		if q == p.phase {
			return false
		}
		if kindOf(q.Name) == PhaseHold {
			return true
		}
	}
	return false
}

// own is how much of the guest's memory is the workload's: what a calibrating
// load was told to hold; in other loads, of what the guest grew by since it was
// idle, as much as the container's limit lets it have. Without a limit all that
// a guest keeps is the sandbox's: a container would have given its cache back.
func (j *judging) own(t *Table, l, idle *ledger.Ledger, guest float64) float64 {
	switch kind := kindOf(t.Phase); {
	case kind == PhaseHold:
		p, err := ParsePhase(t.Phase)
		if err != nil {
			return 0
		}
		return min(float64(p.Bytes), guest)
	case kind == PhaseFio && idle != nil && j.Plan.Limits.Memory > 0:
		before := float64(rowOf(idle, guestRole(l)).Memory.Held()) / float64(t.Sandboxes)
		return min(max(guest-before, 0), float64(j.Plan.Limits.Memory))
	}
	return 0
}

// addCPU adds the CPU of a role. gVisor's sentry also runs the workload where that has no
// processes of its own: the requested CPU of a spinning load is the workload's.
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

// outside names the roles of the sandboxes with more than outsideBound charged
// outside of the pod's group, and where. A runtime's exec is there as long as
// the load that it brought in, and counts in idle phases only.
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
