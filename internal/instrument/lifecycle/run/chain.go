package run

import (
	"slices"

	"github.com/tare-bench/tare/internal/subject"
)

// has reports whether the target supports the operation.
func (v *visit) has(op subject.Op) bool {
	def, ok := v.Target.Info.Operations[string(op)]
	return ok && def.Absent == ""
}

// chain returns the operations before run, in lifecycle order, up to the last requested
// one. Targets with pods use the lifecycle of a pod. It then contains a container only
// if a container operation is requested. Otherwise the empty pod is stopped and
// removed.
func (v *visit) chain() []subject.Op {
	if v.has(subject.Remove) && !v.has(subject.Create) { // the lifecycle starts with run, as for a pod in a cluster
		if !v.asked(subject.Remove) {
			return nil
		}
		return []subject.Op{subject.Run, subject.Remove}
	}
	container := v.upTo(subject.Create, subject.Start, subject.Stop, subject.Remove)
	if !v.has(subject.RunPod) {
		return v.had(container)
	}
	end := v.upTo(subject.StopPod, subject.RemovePod)
	if len(container) > 0 && len(end) > 0 {
		container = []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove}
	}
	if len(container) == 0 && len(end) == 0 && !v.asked(subject.RunPod) {
		return nil
	}
	return v.had(slices.Concat([]subject.Op{subject.RunPod}, container, end))
}

// upTo returns the operations up to the last requested one.
func (v *visit) upTo(ops ...subject.Op) []subject.Op {
	for len(ops) > 0 && !v.asked(ops[len(ops)-1]) {
		ops = ops[:len(ops)-1]
	}
	return ops
}

func (v *visit) asked(op subject.Op) bool { return slices.Contains(v.plan.Ops, op) }

// had drops operations that the target does not support.
func (v *visit) had(ops []subject.Op) []subject.Op {
	return slices.DeleteFunc(ops, func(op subject.Op) bool { return !v.has(op) })
}
