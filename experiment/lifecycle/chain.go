package lifecycle

import (
	"slices"

	"github.com/tare-bench/tare/target"
)

// has tells whether the target has the operation.
func (v *visit) has(op target.Op) bool {
	def, ok := v.w.Info.Operations[string(op)]
	return ok && def.Absent == ""
}

// chain lists the operations before run, in the order of a life, up to the last
// one that is asked for. Where there are pods the life is a pod's: it begins
// with the pod, has a container in it only if one of a container's operations
// is asked for, and is ended without one.
func (v *visit) chain() []target.Op {
	container := v.upTo(target.Create, target.Start, target.Stop, target.Remove)
	if !v.has(target.RunPod) {
		return v.had(container)
	}
	end := v.upTo(target.StopPod, target.RemovePod)
	if len(container) > 0 && len(end) > 0 {
		container = []target.Op{target.Create, target.Start, target.Stop, target.Remove}
	}
	if len(container) == 0 && len(end) == 0 && !v.asked(target.RunPod) {
		return nil
	}
	return v.had(slices.Concat([]target.Op{target.RunPod}, container, end))
}

// upTo are the operations up to the last one that is asked for.
func (v *visit) upTo(ops ...target.Op) []target.Op {
	for len(ops) > 0 && !v.asked(ops[len(ops)-1]) {
		ops = ops[:len(ops)-1]
	}
	return ops
}

func (v *visit) asked(op target.Op) bool { return slices.Contains(v.Plan.Ops, op) }

// had leaves out what the target has not.
func (v *visit) had(ops []target.Op) []target.Op {
	return slices.DeleteFunc(ops, func(op target.Op) bool { return !v.has(op) })
}
