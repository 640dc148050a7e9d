// These programs report every fork, exec and exit of a process. They also count the
// CPU time of tracked processes, see package tracer.
#include "types.h"
#include <bpf/bpf_core_read.h>
#include "kernel.h"

// Some helpers are only available to programs with a GPL-compatible license.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

// These are constants of linux/sched/signal.h and linux/sched.h.
#define SIGNAL_GROUP_EXIT 4
#define TASK_DEAD 0x80

#define MAX_CPUS 1024

// MAX_THREADS limits the threads that are added up at an exit. These are the threads
// that end at the same time, and the leader. At an exec only one thread is left.
#define MAX_THREADS 512

// These limit the bytes of the file name, the arguments and the environment.
#define MAX_FILE 512
#define MAX_ARGS 4096
#define MAX_ENV 4096

#define RING_SIZE (8 << 20)

const volatile __u32 cpus = 1;       // number of possible CPUs
const volatile __s64 tick = 4000000; // ns between two updates of the CPU time by the scheduler
const volatile _Bool group_dead = 0; // sched_process_exit has the argument group_dead (Linux 6.15)

enum kind { FORK = 1, EXEC, EXIT };

enum { ARGS_CUT = 1, ARGS_GONE = 2, ENV_CUT = 4 };

struct event {
	__u32 kind, pid, parent, status;
	__u64 time;
	__s64 cpu, busy;
	__u64 start; // start time; distinguishes processes with the same pid
	__u8 comm[16];
	__u16 file, args, env, flags; // an exec: lengths of the data after the event
};

struct exec {
	struct event event;
	__u8 text[MAX_FILE + MAX_ARGS + MAX_ENV];
};

// slot is the state of one CPU in its own cache line. Only that CPU writes it.
struct slot {
	// The lowest bit is set while a tracked process runs. The other bits are the CPU
	// time (ns) of tracked processes on this CPU. While one runs, its start time is
	// subtracted.
	__s64 busy;
	__u64 offset; // CLOCK_MONOTONIC minus the scheduler clock at the last switch
	__u64 spent;  // run time (ns) of these programs
	__u64 lost;   // events that did not fit
	__u64 line[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct slot);
	__uint(max_entries, 1); // set to the number of CPUs before loading
} tare_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 16384);
} tare_tracked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_SIZE);
} tare_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct exec);
	__uint(max_entries, 1);
} tare_scratch SEC(".maps");

static __always_inline struct slot *here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&tare_cpus, &cpu);
}

static __always_inline void leave(struct slot *s, __u64 began)
{
	__sync_fetch_and_add(&s->spent, bpf_ktime_get_ns() - began);
}

static __always_inline __s64 used_here(struct slot *s, __u64 now)
{
	__s64 busy = *(volatile __s64 *)&s->busy;
	return (busy >> 1) + (busy & 1 ? now : 0);
}

// account ends the interval of the previous process and starts that of pid.
static __always_inline void account(struct slot *s, __u32 pid, __u64 now)
{
	__s64 used = used_here(s, now);
	int tracked = bpf_map_lookup_elem(&tare_tracked, &pid) != 0;
	*(volatile __s64 *)&s->busy = tracked ? (used - now) << 1 | 1 : used << 1;
}

// all_busy returns the CPU time of tracked processes on all CPUs. It includes the
// time of those that are running.
static __always_inline __s64 all_busy(__u64 now)
{
	__s64 sum = 0;
	for (__u32 i = 0; i < MAX_CPUS && i < cpus; i++) {
		__u32 cpu = i;
		struct slot *s = bpf_map_lookup_elem(&tare_cpus, &cpu);
		if (s)
			sum += used_here(s, now);
	}
	return sum;
}

static __always_inline __u32 cpu_of(struct task_struct *t)
{
	struct task_struct___old *old = (void *)t;
	if (bpf_core_field_exists(t->thread_info.cpu))
		return BPF_CORE_READ(t, thread_info.cpu);
	if (bpf_core_field_exists(old->cpu))
		return BPF_CORE_READ(old, cpu);
	return MAX_CPUS;
}

// running returns the CPU time of a running thread since the scheduler has updated its
// sum, and 0 for other threads. The scheduler updates the sum at every tick.
static __always_inline __s64 running(struct task_struct *t, __u64 now)
{
	if (!bpf_core_field_exists(t->on_cpu) || !BPF_CORE_READ(t, on_cpu))
		return 0;
	__u32 cpu = cpu_of(t);
	struct slot *s = bpf_map_lookup_elem(&tare_cpus, &cpu);
	if (!s || !s->offset)
		return 0;
	__s64 more = now - s->offset - BPF_CORE_READ(t, se.exec_start);
	if (more <= 0)
		return 0;
	return more > tick ? tick : more;
}

// used returns the CPU time of a process, including its ended threads. It returns -1
// if the process has more than the given number of threads.
static __always_inline __s64 used(struct task_struct *of, int threads, __u64 now)
{
	struct signal_struct *signal = BPF_CORE_READ(of, signal);
	__s64 sum = BPF_CORE_READ(signal, sum_sched_runtime);
	__u64 head = (__u64)signal + bpf_core_field_offset(struct signal_struct, thread_head);
	__u64 at = (__u64)BPF_CORE_READ(signal, thread_head.next);
	for (int i = 0; i <= threads; i++) {
		if (at == head || !at)
			return sum;
		struct task_struct *t = (void *)(at - bpf_core_field_offset(struct task_struct, thread_node));
		sum += BPF_CORE_READ(t, se.sum_exec_runtime) + running(t, now);
		at = (__u64)BPF_CORE_READ(t, thread_node.next);
	}
	return -1;
}

// begin fills in the process of an event. The name is that of the current task.
static __always_inline void begin(struct event *e, enum kind kind, struct task_struct *t, __u64 now)
{
	e->kind = kind;
	e->time = now;
	e->pid = t->tgid;
	e->parent = t->real_parent->tgid;
	e->start = t->group_leader->start_time;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
}

// output writes an event to the ring buffer. It wakes the reader up only if a quarter
// of the buffer is full, because the reader polls.
static __always_inline void output(struct slot *s, void *event, __u64 size)
{
	__u64 wake = bpf_ringbuf_query(&tare_events, BPF_RB_AVAIL_DATA) < RING_SIZE / 4 ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&tare_events, event, size, wake))
		__sync_fetch_and_add(&s->lost, 1);
}

static __always_inline long state_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return ((struct task_struct___old *)t)->state;
}

// The scheduler has just set exec_start of the next task, except for the idle task. A
// process is no longer tracked after the exit of its last thread.
SEC("tp_btf/sched_switch")
int tare_switch(__u64 *ctx) // preempt, from, to
{
	struct task_struct *from = (void *)ctx[1], *to = (void *)ctx[2];
	__u64 now = bpf_ktime_get_ns();
	struct slot *s = here();
	if (!s)
		return 0;
	__u32 pid = to->tgid;
	if (pid)
		s->offset = now - to->se.exec_start;
	account(s, pid, now);
	if (state_of(from) & TASK_DEAD && from->signal->live.counter == 0) {
		__u32 gone = from->tgid;
		bpf_map_delete_elem(&tare_tracked, &gone);
	}
	leave(s, now);
	return 0;
}

// tare_mark does the accounting of a switch for the current task. tare runs it on every
// CPU after a change of the tracked processes.
SEC("raw_tp/mark")
int tare_mark(void *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct slot *s = here();
	if (!s)
		return 0;
	account(s, bpf_get_current_pid_tgid() >> 32, now);
	leave(s, now);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int tare_fork(__u64 *ctx) // parent, child
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u64 now = bpf_ktime_get_ns();
	struct slot *s = here();
	if (!s)
		return 0;
	__u32 pid = child->pid, by = parent->tgid, one = 1;
	if (child->pid == child->tgid) { // not a thread
		struct event e = {};
		if (bpf_map_lookup_elem(&tare_tracked, &by))
			bpf_map_update_elem(&tare_tracked, &pid, &one, 0);
		begin(&e, FORK, child, now);
		e.parent = by;
		e.start = child->start_time;
		e.busy = all_busy(now);
		output(s, &e, sizeof(e));
	}
	leave(s, now);
	return 0;
}

// last_of reports whether a thread is the last of its process. Without group_dead, two
// concurrent exits may both be the last. The reader finds duplicates by the start time.
static __always_inline int last_of(__u64 *ctx)
{
	if (group_dead)
		return *(volatile __u64 *)&ctx[1] & 0xff;
	return ((struct task_struct *)ctx[0])->signal->live.counter == 0;
}

// The exit code is the same as in wait(2): the group exit code if the whole group was
// ended, and that of the leader otherwise.
SEC("tp_btf/sched_process_exit")
int tare_exit(__u64 *ctx) // thread, group_dead
{
	struct task_struct *t = (void *)ctx[0];
	__u64 now = bpf_ktime_get_ns();
	struct slot *s = here();
	if (!s)
		return 0;
	if (last_of(ctx)) {
		struct event e = {};
		begin(&e, EXIT, t, now);
		e.status = t->signal->flags & SIGNAL_GROUP_EXIT ? t->signal->group_exit_code : t->group_leader->exit_code;
		e.cpu = used(t, MAX_THREADS, now);
		e.busy = all_busy(now);
		output(s, &e, sizeof(e));
	}
	leave(s, now);
	return 0;
}

// at_most limits n for the verifier. The limit is repeated at each use, because verifiers
// before Linux 6.2 lose it when the compiler moves or spills n.
static __always_inline __u64 at_most(__u64 most, __u64 n)
{
	asm volatile("if %0 <= %1 goto +1; %0 = %1" : "+r"(n) : "i"(most));
	return n;
}

// bytes returns the number of bytes between two addresses, or 0.
static __always_inline __u64 bytes(__u64 start, __u64 end)
{
	return end < start ? 0 : end - start;
}

// The kernel has just written the arguments and the end of the environment.
SEC("tp_btf/sched_process_exec")
int tare_exec(__u64 *ctx) // thread, its former pid, program
{
	struct task_struct *t = (void *)ctx[0];
	struct linux_binprm *program = (void *)ctx[2];
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct slot *s = here();
	struct exec *x = bpf_map_lookup_elem(&tare_scratch, &zero);
	if (!s)
		return 0;
	if (x) {
		struct event *e = &x->event;
		struct mm_struct *mm = t->mm;
		__u64 arg_start = mm->arg_start, env_end = mm->env_end;
		__u64 all_args = bytes(arg_start, mm->arg_end), all_env = bytes(mm->env_start, env_end);
		begin(e, EXEC, t, now);
		e->status = 0;
		e->cpu = used(t, 1, now);
		e->busy = all_busy(now);
		e->flags = (all_args > MAX_ARGS ? ARGS_CUT : 0) | (all_env > MAX_ENV ? ENV_CUT : 0);

		long name = bpf_probe_read_kernel_str(x->text, MAX_FILE, program->filename);
		__u64 file = at_most(MAX_FILE, name < 0 ? 0 : name);
		__u64 args = all_args > MAX_ARGS ? MAX_ARGS : all_args;
		__u64 env = all_env > MAX_ENV ? MAX_ENV : all_env;
		e->file = file;
		e->args = args;
		e->env = env;
		if (bpf_probe_read_user(x->text + file, at_most(MAX_ARGS, args), (void *)arg_start))
			e->flags |= ARGS_GONE;
		__u64 before = at_most(MAX_FILE + MAX_ARGS, file + args);
		if (bpf_probe_read_user(x->text + before, at_most(MAX_ENV, env), (void *)(env_end - env)))
			e->flags |= ENV_CUT;
		output(s, x, sizeof(*e) + at_most(sizeof(x->text), before + env));
	}
	leave(s, now);
	return 0;
}
