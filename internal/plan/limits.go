package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/tare-bench/tare/internal/subject"
)

// What limits may be. The JSON Schema states the same.
const (
	MinMemory    = 1 << 20 // no runtime starts a container in less
	MinCPUShares = 2       // the kernel's own range, v1's cpu.shares
	MaxCPUShares = 262_144
	MinCPU       = 0.01 // the kernel takes no quota below 1 ms, a hundredth of its period
	MaxCPU       = 1024
)

func (r *reading) limits(at places, node ast.Node, into *subject.Limits) {
	r.fields("limits", node, []field{
		{name: "memory", read: func(n ast.Node) { set(at, "limits.memory", n, &into.Memory, r.memory) }},
		{name: "pids", read: func(n ast.Node) { set(at, "limits.pids", n, &into.Pids, r.whole64) }},
		{name: "cpu_shares", read: func(n ast.Node) { set(at, "limits.cpu_shares", n, &into.CPUShares, r.whole64) }},
		{name: "cpu", read: func(n ast.Node) { set(at, "limits.cpu", n, &into.CPU, r.cpus) }},
	})
}

func (r *reading) memory(what string, node ast.Node) (int64, bool) {
	return scalar(r, what, node, ParseMemory)
}

func (r *reading) cpus(what string, node ast.Node) (float64, bool) {
	return scalar(r, what, node, parseCPULimit)
}

// parseCPULimit reads CPUs as Kubernetes has them, "1", "0.5" or "500m", and
// finer than a thousandth too.
func parseCPULimit(s string) (float64, error) {
	if n, ok := parseCPUs(strings.TrimSpace(s)); ok {
		return n, nil
	}
	milli, err := ParseMilliCPU(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number of CPUs: write one such as 1, 0.5 or 500m", quote(s))
	}
	return float64(milli) / 1000, nil
}

// ParseLimit reads limits such as "cpu=1,memory=1Gi,pids=100", by their names in
// a plan. What is not named is 0, no limit.
func ParseLimit(s string) (subject.Limits, error) {
	var l subject.Limits
	seen := map[string]bool{}
	for word := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(word, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if seen[name] {
			return subject.Limits{}, fmt.Errorf("%s is there twice in the limits %s: keep one of them", quote(name), quote(s))
		}
		seen[name] = true
		var err error
		switch name {
		case "memory":
			l.Memory, err = ParseMemory(value)
		case "pids":
			l.Pids, err = parseWhole(value)
		case "cpu_shares":
			l.CPUShares, err = parseWhole(value)
		case "cpu":
			l.CPU, err = parseCPULimit(value)
		default:
			err = fmt.Errorf("unknown limit %s in %s: write cpu=1,memory=1Gi,pids=100,cpu_shares=1024, or some of them", quote(name), quote(s))
		}
		if err != nil {
			return subject.Limits{}, err
		}
	}
	if found := limitsComplaints(l, true); len(found) > 0 {
		return subject.Limits{}, found[0]
	}
	return l, nil
}

func parseWhole(s string) (int64, error) {
	n, err := decimal(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", quote(s))
	}
	return n, nil
}

// limitsComplaints takes 0, no limit, of CPU always, and of the others where
// there may be none.
func limitsComplaints(limits subject.Limits, mayBeNone bool) []complaint {
	var all []complaint
	none := func(n int64) bool { return mayBeNone && n == 0 }
	if !none(limits.Memory) && limits.Memory < MinMemory {
		all = append(all, complain("limits.memory", "%d bytes start no container: write at least %d, with a unit if it is not bytes, such as 512Mi", limits.Memory, MinMemory))
	}
	if !none(limits.Pids) && limits.Pids < 1 {
		all = append(all, complain("limits.pids", "%d is not a number of tasks: write at least 1", limits.Pids))
	}
	if !none(limits.CPUShares) && (limits.CPUShares < MinCPUShares || limits.CPUShares > MaxCPUShares) {
		all = append(all, complain("limits.cpu_shares", "%d is not a weight: from %d to %d are allowed, 1024 is one part", limits.CPUShares, MinCPUShares, MaxCPUShares))
	}
	if cpu := limits.CPU; math.IsNaN(cpu) || (cpu != 0 && (cpu < MinCPU || cpu > MaxCPU)) {
		all = append(all, complain("limits.cpu", "%g is not a number of CPUs: from %g to %d are allowed, and 0 for as much as there is", cpu, MinCPU, MaxCPU))
	}
	return all
}
