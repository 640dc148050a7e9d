// These are the members of kernel structs that the programs read. Their offsets are
// resolved with the BTF of the kernel when the programs are loaded (CO-RE).
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct sched_entity {
	__u64 exec_start, sum_exec_runtime;
};

struct thread_info {
	__u32 cpu;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
	unsigned long long sum_sched_runtime;
	struct list_head thread_head;
};

struct mm_struct {
	unsigned long arg_start, arg_end, env_start, env_end;
};

struct linux_binprm {
	const char *filename;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	struct sched_entity se;
	struct mm_struct *mm;
	int exit_code, pid, tgid;
	struct task_struct *real_parent, *group_leader;
	__u64 start_time;
	struct signal_struct *signal;
	struct list_head thread_node;
};

// state is from before Linux 5.14, cpu from before Linux 5.16.
struct task_struct___old {
	long state;
	unsigned int cpu;
};

#pragma clang attribute pop
