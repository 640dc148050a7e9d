package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/ledger"
	"github.com/tare-bench/tare/plan"
	"github.com/tare-bench/tare/record"
)

// What a recommendation is rounded to.
const (
	classMargin = 1.1
	classMemory = 4 << 20 // bytes
	classCPU    = 10      // milli-CPUs
)

// needs is what a phase needs of a pod's overhead, per sandbox.
type needs struct {
	memory   float64 // bytes
	own      float64 // of the guest's memory, the workload's own
	cpu      float64 // milli-CPUs
	cpuKnown bool
	parts    []string // by role, in words
	cpuParts []string
}

// classes recommends an overhead for every target that has sandboxes.
func (j *overheadJudge) classes() {
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

// class takes the largest of what the phases need. Kubernetes adds
// overhead.podFixed to what the scheduler counts for a pod and to the limits of
// the pod's cgroup; the workload's own memory is in the containers' requests and
// limits already.
func (j *overheadJudge) class(t *record.Target) (RuntimeClass, bool) {
	c := RuntimeClass{Target: t.Name, Handler: handler(t.Name)}
	var most, mostCPU needs
	var in, inCPU string
	var charged *OverheadCell
	seen := false
	for i := range j.Tables {
		table := &j.Tables[i]
		cell := j.at(t.Name, step{table.Phase, table.Sandboxes})
		if cell == nil || !cell.Ledger.Complete || table.Sandboxes == 0 {
			continue
		}
		n := j.needs(table, cell)
		where := fmt.Sprintf("phase %s with %s", table.Phase, sandboxes(table.Sandboxes))
		if !seen || n.memory > most.memory {
			most, in, charged = n, where, cell
		}
		if n.cpuKnown && n.cpu > mostCPU.cpu {
			mostCPU, inCPU = n, where
		}
		seen = true
	}
	if !seen {
		return c, false
	}
	c.Memory = int64(math.Ceil(most.memory*classMargin/classMemory)) * classMemory
	c.CPU = int64(math.Ceil(mostCPU.cpu/classCPU)) * classCPU
	if c.Memory == 0 && c.CPU == 0 {
		return c, false
	}
	c.Rule = append(c.Rule, fmt.Sprintf("memory: the most that a sandbox took beyond its workload, %s in %s (%s), and 10 %%, rounded up to 4Mi; page cache gives way and is left out",
		bytesText(most.memory), in, strings.Join(most.parts, " + ")))
	if most.own > 0 {
		c.Rule = append(c.Rule, fmt.Sprintf("of the guest's memory %s is the workload's own, and left out", bytesText(most.own)))
	}
	switch {
	case c.CPU > 0:
		c.Rule = append(c.Rule, fmt.Sprintf("cpu: the most that a sandbox used beside its workload, %.1fm in %s (%s), rounded up to 10m", mostCPU.cpu, inCPU, strings.Join(mostCPU.cpuParts, " + ")))
	default:
		c.Rule = append(c.Rule, "cpu: none was seen beside the workload's")
	}
	if out := outside(&charged.Ledger, false); len(out) > 0 {
		c.Rule = append(c.Rule, "podFixed does not contain what is charged outside of the pod's cgroup; its limit is not enforced on "+strings.Join(out, ", "))
	}
	c.YAML = yamlOf(&c)
	return c, true
}

// needs weighs a phase. Negative rows, noise or memory that a daemon gave back,
// do not make a sandbox cheaper.
func (j *overheadJudge) needs(t *OverheadTable, c *OverheadCell) needs {
	n, l := float64(t.Sandboxes), &c.Ledger
	idle := j.idleOf(c.Target, t.Sandboxes)
	out := needs{cpuKnown: true}
	guest, kind := guestRole(l), kindOf(t.Phase)
	for _, r := range l.Rows {
		if r.Role == record.RoleWorkload || r.Role == record.RoleCache || r.Role == record.RoleOthers || r.Role == record.RoleKernelNode {
			continue
		}
		amount := max(float64(r.Memory.Sum())/n, 0)
		if idle != nil && r.Role == record.RoleRuntime && kind != plan.PhaseIdle {
			// The exec that brought the load in goes with the load.
			amount = min(amount, max(float64(rowOf(&idle.Ledger, r.Role).Memory.Sum())/n, 0))
		}
		if r.Role == guest {
			out.own = j.own(t, c, idle, amount)
			amount -= out.own
		}
		if amount > 0 {
			out.parts = append(out.parts, fmt.Sprintf("%s %s", r.Role, bytesText(amount)))
		}
		out.memory += amount
		out.addCPU(&r, n, c, kind)
	}
	return out
}

// own is how much of the guest's memory is the workload's: what a calibrating
// load was told to hold; in other loads, of what the guest grew by since it was
// idle, as much as the container's limit lets it have. Without a limit all that
// a guest keeps is the sandbox's: a container would have given its cache back.
func (j *overheadJudge) own(t *OverheadTable, c, idle *OverheadCell, guest float64) float64 {
	switch kind := kindOf(t.Phase); {
	case kind == plan.PhaseHold:
		p, err := plan.ParsePhase(t.Phase)
		if err != nil {
			return 0
		}
		return min(float64(p.Bytes), guest)
	case kind == plan.PhaseFio && idle != nil && j.Plan.Limits.Memory > 0:
		before := float64(rowOf(&idle.Ledger, guestRole(&c.Ledger)).Memory.Sum()) / float64(t.Sandboxes)
		return min(max(guest-before, 0), float64(j.Plan.Limits.Memory))
	}
	return 0
}

// addCPU adds the CPU of the roles that stand beside a workload. gVisor's sentry
// runs it too where that has no processes of its own: what a spinning load was told
// is the workload's.
func (n *needs) addCPU(r *ledger.Row, sandboxes float64, c *OverheadCell, kind plan.PhaseKind) {
	switch r.Role {
	case record.RoleShim, record.RoleVMM, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer, record.RoleMonitor:
	default:
		return
	}
	if !r.CPUKnown {
		n.cpuKnown = n.cpuKnown && r.Processes == 0
		return
	}
	milli := 1000 * r.CPU / sandboxes
	if r.Role == record.RoleSentry && kind == plan.PhaseSpin && rowOf(&c.Ledger, record.RoleWorkload).Processes == 0 {
		milli = max(milli-1000*c.Told, 0)
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
			out = append(out, fmt.Sprintf("%s %s in %s", p.Role, bytesText(float64(p.Memory)), where))
		}
	}
	return out
}

// handler is the runtime's name as Kubernetes takes it: a DNS label.
func handler(target string) string {
	name := target[strings.LastIndex(target, "/")+1:]
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	if label = strings.Trim(label[:min(len(label), 63)], "-"); label == "" {
		return "runtime"
	}
	return label
}

func yamlOf(c *RuntimeClass) string {
	var fixed strings.Builder
	if c.Memory > 0 {
		fmt.Fprintf(&fixed, "    memory: \"%dMi\"\n", c.Memory>>20)
	}
	if c.CPU > 0 {
		fmt.Fprintf(&fixed, "    cpu: \"%dm\"\n", c.CPU)
	}
	return fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: %q\nhandler: %q\noverhead:\n  podFixed:\n%s", c.Handler, c.Handler, fixed.String())
}

// check says of an existing overhead whether it is enough, phase by phase and
// without a margin. A phase that was left out, that failed or that could not be
// read whole proves nothing to be enough.
func (j *overheadJudge) check() {
	asked := j.Plan.Check
	if asked == nil {
		return
	}
	for i := range j.Targets {
		t := &j.Targets[i]
		if t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		c := Check{Target: t.Name, Memory: asked.Memory, CPU: asked.CPU, Enough: true}
		for _, s := range j.steps() {
			table, cell := j.table(s), j.at(t.Name, s)
			if s.n == 0 || cell == nil && !slices.Contains(j.planned(), s) {
				continue
			}
			p := CheckPhase{Phase: s.name, Sandboxes: s.n}
			if cell == nil || !cell.Ledger.Complete { // too small to be a proof of anything
				c.Enough = false
				c.Phases = append(c.Phases, p)
				continue
			}
			n := j.needs(table, cell)
			p.Measured, p.Memory, p.CPU = true, int64(math.Ceil(n.memory)), n.cpu
			p.MemoryEnough = p.Memory <= c.Memory
			p.CPUEnough = n.cpuKnown && math.Round(p.CPU) <= float64(c.CPU) // Kubernetes counts in whole thousandths
			c.Enough = c.Enough && p.MemoryEnough && p.CPUEnough
			c.Phases = append(c.Phases, p)
		}
		c.Enough = c.Enough && len(c.Phases) > 0
		j.Check = append(j.Check, c)
	}
}

func sandboxes(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

// bytesText prints bytes with a unit of 1024s.
func bytesText(b float64) string {
	switch a := math.Abs(b); {
	case a >= 1<<30:
		return fmt.Sprintf("%.2f GiB", b/(1<<30))
	case a >= 1<<20:
		return fmt.Sprintf("%.1f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", b/(1<<10))
}
