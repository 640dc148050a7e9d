package run

import (
	"slices"

	"github.com/tare-bench/tare/internal/subject"
)

// has tells whether the target has the operation.
func (v *visit) has(op subject.Op) bool {
	def, ok := v.Target.Info.Operations[string(op)]
	return ok && def.Absent == ""
}

// chain lists the operations before run, in the order of a life, up to the last
// one that is asked for. Where there are pods the life is a pod's: it begins
// with the pod, has a container in it only if one of a container's operations
// is asked for, and is ended without one.
func (v *visit) chain() []subject.Op {
	if v.has(subject.Remove) && !v.has(subject.Create) { // a life begins with run, as a pod's in a cluster
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

// upTo are the operations up to the last one that is asked for.
func (v *visit) upTo(ops ...subject.Op) []subject.Op {
	for len(ops) > 0 && !v.asked(ops[len(ops)-1]) {
		ops = ops[:len(ops)-1]
	}
	return ops
}

func (v *visit) asked(op subject.Op) bool { return slices.Contains(v.plan.Ops, op) }

// had leaves out what the target has not.
func (v *visit) had(ops []subject.Op) []subject.Op {
	return slices.DeleteFunc(ops, func(op subject.Op) bool { return !v.has(op) })
}
