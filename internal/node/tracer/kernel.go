package tracer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// kernel is where this kernel keeps what the programs read: offsets in bytes
// into its structs, from its own description of them (BTF). A member that not
// every kernel has is absent.
type kernel struct {
	task struct {
		pid, tgid, realParent, leader, signal, mm int32
		exitCode, startTime, state, threadNode    int32
		execStart, sumExec                        int32 // of the sched_entity within
		onCPU, cpu                                int32 // or absent
	}
	signal struct {
		live, flags, groupExitCode, sumRuntime, threadHead int32
	}
	mm struct {
		argStart, argEnd, envStart, envEnd int32
	}
	binprm struct {
		filename int32
	}
	stateSize int // bytes of task.state: 8 before Linux 5.14
	// groupDead says that sched_process_exit has a second argument, whether this
	// was the last thread (Linux 6.15).
	groupDead bool
}

const absent = -1

// describe reads the offsets out of the kernel's BTF.
func describe() (*kernel, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("the kernel's BTF: %w", err)
	}
	var k kernel
	var errs []error
	in := func(name string) func(paths ...string) int32 {
		var s *btf.Struct
		if err := spec.TypeByName(name, &s); err != nil {
			errs = append(errs, fmt.Errorf("struct %s: %w", name, err))
			return func(...string) int32 { return absent }
		}
		return func(paths ...string) int32 {
			for _, path := range paths {
				if off, ok := offset(s.Members, strings.Split(path, ".")); ok {
					return off
				}
			}
			errs = append(errs, fmt.Errorf("struct %s has no %s", name, strings.Join(paths, " or ")))
			return absent
		}
	}
	task := in("task_struct")
	k.task.pid, k.task.tgid = task("pid"), task("tgid")
	k.task.realParent, k.task.leader = task("real_parent"), task("group_leader")
	k.task.signal, k.task.mm = task("signal"), task("mm")
	k.task.exitCode, k.task.startTime = task("exit_code"), task("start_time")
	k.task.state, k.stateSize = task("__state", "state"), 4
	k.task.threadNode = task("thread_node")
	k.task.execStart, k.task.sumExec = task("se.exec_start"), task("se.sum_exec_runtime")
	signal := in("signal_struct")
	k.signal.live, k.signal.flags = signal("live"), signal("flags")
	k.signal.groupExitCode, k.signal.sumRuntime = signal("group_exit_code"), signal("sum_sched_runtime")
	k.signal.threadHead = signal("thread_head")
	mm := in("mm_struct")
	k.mm.argStart, k.mm.argEnd = mm("arg_start"), mm("arg_end")
	k.mm.envStart, k.mm.envEnd = mm("env_start"), mm("env_end")
	k.binprm.filename = in("linux_binprm")("filename")
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("the kernel's BTF: %w", err)
	}
	k.optional(spec)
	return &k, nil
}

func (k *kernel) optional(spec *btf.Spec) {
	var task *btf.Struct
	_ = spec.TypeByName("task_struct", &task)
	find := func(paths ...string) int32 {
		for _, path := range paths {
			if off, ok := offset(task.Members, strings.Split(path, ".")); ok {
				return off
			}
		}
		return absent
	}
	k.task.onCPU, k.task.cpu = find("on_cpu"), find("thread_info.cpu", "cpu")
	if find("__state") == absent {
		k.stateSize = 8
	}
	var exit *btf.Typedef
	if spec.TypeByName("btf_trace_sched_process_exit", &exit) != nil {
		return
	}
	if p, ok := btf.UnderlyingType(exit).(*btf.Pointer); ok {
		if f, ok := p.Target.(*btf.FuncProto); ok {
			k.groupDead = len(f.Params) >= 3 // the first is the tracepoint's own data
		}
	}
}

// offset follows a path of members, also through structs without a name.
func offset(members []btf.Member, path []string) (int32, bool) {
	for _, m := range members {
		var inner []btf.Member
		switch t := btf.UnderlyingType(m.Type).(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		rest := path
		if m.Name == path[0] {
			if len(path) == 1 {
				return int32(m.Offset.Bytes()), m.BitfieldSize == 0
			}
			rest = path[1:]
		} else if m.Name != "" {
			continue
		}
		if off, ok := offset(inner, rest); ok {
			return off + int32(m.Offset.Bytes()), true
		}
	}
	return 0, false
}
