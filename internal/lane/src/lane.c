/*
 * A lane is a tiny static process that performs one operation at a time and
 * timestamps it. tare has one process per lane of a batch. It passes orders
 * through shared memory; the lanes wait at one futex and are released by one
 * wake-up. So
 *
 *  - a plain fork/exec/wait loop takes the timestamps, not a program with a
 *    garbage collector and a scheduler;
 *  - a hundred commands start together without a hundred forks of a large
 *    process, and the start of each lane is known;
 *  - tare sleeps while a batch runs.
 *
 * If permitted, a lane runs with SCHED_FIFO and SCHED_RESET_ON_FORK: its child
 * processes are ordinary ones, but the lane notices their end at once, even on
 * a busy machine. Measured work of the lane itself, the host's fork and all of
 * the floor, also runs with ordinary priority.
 *
 * A lane is also the subreaper of its commands. So it gets the exit status of a
 * container's first process, and no zombie is left after the next order.
 *
 *	lane INDEX COUNT	(descriptors 3, 4 and perhaps 5 are inherited)
 */
#include "floor.h"

static void arrive(u32 *counter, const u32 *want)
{
	if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) == __atomic_load_n(want, __ATOMIC_ACQUIRE))
		futex_wake(counter, 1);
}

static u32 await_orders(struct slot *s)
{
	u32 word;
	while ((word = __atomic_load_n(&s->word, __ATOMIC_ACQUIRE)) == IDLE)
		futex_wait(&s->word, IDLE);
	return word;
}

static void await_release(struct header *h)
{
	u32 gate = __atomic_load_n(&h->gate, __ATOMIC_ACQUIRE);
	arrive(&h->parked, &h->want_parked);
	while (__atomic_load_n(&h->gate, __ATOMIC_ACQUIRE) == gate)
		futex_wait(&h->gate, gate);
}

static void clear_results(struct slot *s)
{
	s->start = s->spawned = s->returned = s->seen = s->exited = 0;
	s->user = s->sys = s->maxrss = 0;
	s->status = s->err = 0;
	s->stage = STAGE_NONE;
	s->workload_status = 0;
	s->workload_known = 0;
	s->missing = 0;
	s->out_len = s->err_len = s->dropped = 0;
}

static void perform(struct lane *l, struct slot *s)
{
	switch (s->op) {
	case OP_EXEC:
		exec_command(l, s);
		break;
	case OP_SPAWN:
		spawn_workload(l, s);
		break;
	case OP_KILL:
		kill_workload(l, s);
		break;
	case OP_FLOOR_CREATE:
		floor_create(l, s);
		break;
	case OP_FLOOR_START:
		floor_start(l, s);
		break;
	case OP_FLOOR_RUN:
		floor_run(l, s);
		break;
	case OP_FLOOR_REMOVE:
		floor_remove(l, s);
		break;
	}
}

/* Does all work that is possible before the release. */
static void prepare(struct lane *l, struct slot *s)
{
	clear_results(s);
	split_args(l, s);
	drain(l, s); /* output since the last operation belongs to no order */
	s->out_len = s->err_len = s->dropped = 0;
	close_fd(&l->watch_fd);
	/* The lane's own work runs with ordinary priority. */
	set_urgent(l, s->op == OP_EXEC);
	if (s->op == OP_KILL && (l->work_fd < 0 || s->watch != l->work_pid)) {
		fail(s, STAGE_GONE, -ESRCH);
	} else if (s->need & NEED_EXIT) {
		long fd = s->op == OP_KILL ? sys3(SYS_fcntl, l->work_fd, F_DUPFD_CLOEXEC, 3)
					   : sys2(SYS_pidfd_open, s->watch, 0);
		if (fd < 0)
			fail(s, STAGE_GONE, fd);
		else
			l->watch_fd = (int)fd;
	}
}

__attribute__((noreturn)) static void serve(struct lane *l, struct header *h, struct slot *s)
{
	for (;;) {
		u32 word = await_orders(s);
		prepare(l, s);
		if (word == ARMED)
			await_release(h);
		u64 own = cpu_used();
		if (s->stage == STAGE_NONE)
			perform(l, s);
		set_urgent(l, 1);
		s->own = cpu_used() - own;
		/* A workload that has ended since its start is not reaped: tare reads its
		 * status. */
		if (!(s->need & NEED_READY))
			reap_orphans();
		__atomic_store_n(&s->word, IDLE, __ATOMIC_RELEASE);
		arrive(&h->done, &h->want_done);
	}
}

/* Tries the highest priority first; the header has the result. */
static u32 raise_priority(void)
{
	int one = 1;
	if (sys3(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &one) == 0)
		return 2;
	int zero = 0;
	if (sys3(SYS_sched_setscheduler, 0, SCHED_RESET_ON_FORK, &zero) == 0 &&
	    sys3(SYS_setpriority, 0, 0, -20) == 0)
		return 1;
	return 0;
}

/* Pins lane 0 to the CPU on which tare itself waits. Batches of one lane switch between
 * the two processes. Waking a process on another idle CPU takes several times longer
 * than the rest of the harness. */
static void settle(struct lane *l, u32 home)
{
	if (home == 0 || home > sizeof l->cpus * 8)
		return;
	long size = sys3(SYS_sched_getaffinity, 0, sizeof l->cpus, l->cpus);
	if (size <= 0)
		return;
	static u64 one[128];
	one[(home - 1) / 64] = 1ul << ((home - 1) % 64);
	if (sys3(SYS_sched_setaffinity, 0, size, one) == 0)
		l->cpus_size = size;
}

/* The environment of tare must not affect the measured process: descriptors left open by
 * a shell, a signal ignored by nohup, a signal mask. */
static void forget_origin(int first_unused)
{
	sys3(SYS_close_range, first_unused, ~0u, 0);
	u64 none[4] = {0}; /* SIG_DFL, no flags, no restorer, empty mask */
	for (int sig = 1; sig <= 64; sig++)
		sys4(SYS_rt_sigaction, sig, none, 0, 8);
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, none, 0, 8);
}

__attribute__((noreturn, used)) void lane(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1);
	if (argc != 4)
		die(2);
	u64 index = number(argv[1]);
	u64 count = number(argv[2]);
	u64 inherited = number(argv[3]); /* descriptors from FD_SHARED on */
	if (index >= count || count > 4096 || inherited < 2 || inherited > 3)
		die(2);

	sys2(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
	forget_origin((int)(FD_SHARED + inherited));
	for (int fd = FD_SHARED; fd < FD_SHARED + (int)inherited; fd++)
		sys3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
	if (inherited == 3 && sys2(SYS_setns, FD_MOUNTS, CLONE_NEWNS) < 0)
		die(6);

	u64 size = HEADER_SIZE + ENV_SIZE + count * SLOT_SIZE;
	long base = sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED, FD_SHARED, 0);
	if (base < 0 && base > -4096)
		die(3);
	struct header *h = (struct header *)base;
	if (h->layout != LAYOUT)
		die(4);
	struct slot *s = (struct slot *)(base + HEADER_SIZE + ENV_SIZE + (long)index * SLOT_SIZE);

	static struct lane l;
	if (open_lane(&l, (char *)base + HEADER_SIZE) < 0)
		die(5);
	if (index == 0)
		settle(&l, h->home);
	long slack = sys1(SYS_prctl, PR_GET_TIMERSLACK);
	l.slack = slack > 0 ? (u64)slack : 0;
	l.priority = raise_priority();
	l.urgent = 1;
	__atomic_store_n(&h->priority, l.priority, __ATOMIC_RELEASE);
	serve(&l, h, s);
}

TARE_START(lane);
