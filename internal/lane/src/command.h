/*
 * Commands: start a command, wait for its exit, the probe's line and the exit of another
 * process at the same time, and timestamp each event.
 */
#ifndef TARE_COMMAND_H
#define TARE_COMMAND_H

#include "shared.h"

enum {
	F_SETFD = 2, F_SETFL = 4, F_DUPFD_CLOEXEC = 1030, FD_CLOEXEC = 1,
	O_RDONLY = 0, O_WRONLY = 1, O_NONBLOCK = 04000, O_CLOEXEC = 02000000,
	PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1,
	FUTEX_WAIT = 0, FUTEX_WAKE = 1,
	PR_SET_CHILD_SUBREAPER = 36, PR_SET_TIMERSLACK = 29, PR_GET_TIMERSLACK = 30,
	SCHED_OTHER = 0, SCHED_FIFO = 1, SCHED_RESET_ON_FORK = 0x40000000,
	CLOCK_PROCESS_CPUTIME_ID = 2,
	CLONE_VM = 0x100, CLONE_VFORK = 0x4000, CLONE_PIDFD = 0x1000, CLONE_NEWNS = 0x20000,
	WNOHANG = 1,
	POLLIN = 1, POLLHUP = 16,
	MAX_ARGS = 256, MAX_ENV = 2048,
	O_DIRECTORY =
#if defined(__x86_64__)
		0200000,
#else
		040000,
#endif
};

struct pollfd {
	i32 fd;
	short events;
	short revents;
};

struct rusage {
	struct { i64 sec, usec; } user, sys;
	i64 maxrss; /* KiB */
	i64 rest[13];
};

/* The state of a lane besides its slot. */
struct lane {
	int null_fd;
	int out_r, out_w; /* standard output of commands and of the workload */
	int err_r, err_w; /* standard error of commands */
	int watch_fd;	  /* pidfd of the process whose exit ends the operation */
	int call_fd;	  /* pidfd of the command */
	int gate_w;	  /* floor: a byte written here lets the container exec */
	int sync_r;	  /* floor: "created", then end of file at exec */
	i32 call_pid;
	int work_fd;	  /* pidfd of the workload that the lane started: host, floor */
	i32 work_pid;
	u32 priority;	  /* priority set by raise_priority */
	int urgent;	  /* the priority is active */
	u64 slack;	  /* timer slack (ns) of an ordinary process */
	long cpus_size;	  /* bytes of cpus, 0 if the lane is not pinned */
	u64 cpus[128];	  /* CPUs for child processes: those of tare */
	char *argv[MAX_ARGS + 1];
	char *envp[MAX_ENV + 1];
};

__attribute__((noreturn)) static inline void die(int code)
{
	for (;;)
		sys1(SYS_exit_group, code);
}

static inline void futex_wait(u32 *word, u32 value)
{
	sys4(SYS_futex, word, FUTEX_WAIT, value, 0);
}

static inline void futex_wake(u32 *word, u32 n)
{
	sys3(SYS_futex, word, FUTEX_WAKE, n);
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		sys1(SYS_close, *fd);
	*fd = -1;
}

static inline u64 cpu_used(void)
{
	struct timespec t;
	sys2(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t);
	return (u64)t.sec * 1000000000u + (u64)t.nsec;
}

/* A lane waits with high priority, so that it notices events at once. Work that is
 * measured itself (the host's fork, all of the floor) runs with ordinary priority, as in
 * runtimes. */
static void set_urgent(struct lane *l, int urgent)
{
	if (l->urgent == urgent)
		return;
	int level = urgent ? 1 : 0;
	if (l->priority == 2)
		sys3(SYS_sched_setscheduler, 0, (urgent ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &level);
	else if (l->priority == 1)
		sys3(SYS_setpriority, 0, 0, urgent ? -20 : 0);
	l->urgent = urgent;
}

/* Reports only the first failure. */
static inline void fail(struct slot *s, u32 stage, long result)
{
	if (s->stage != STAGE_NONE)
		return;
	s->stage = stage;
	s->err = (i32)-result;
}

/* Splits n consecutive strings into a NULL-terminated vector. */
static void split(char *strings, u64 size, char **vector, u64 max)
{
	u64 n = 0, at = 0;
	while (n < max && at < size && strings[at]) {
		vector[n++] = strings + at;
		while (at < size && strings[at])
			at++;
		at++;
	}
	vector[n] = 0;
}

static void split_args(struct lane *l, struct slot *s)
{
	u64 n = 0, at = 0;
	while (n < s->argc && n < MAX_ARGS && at < ARGS_SIZE) {
		l->argv[n++] = s->args + at;
		while (at < ARGS_SIZE - 1 && s->args[at])
			at++;
		at++;
	}
	l->argv[n] = 0;
}

static int open_lane(struct lane *l, char *environment)
{
	int p[2];
	l->watch_fd = l->call_fd = l->gate_w = l->sync_r = l->work_fd = -1;
	l->null_fd = (int)sys4(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
	if (l->null_fd < 0 || sys2(SYS_pipe2, p, O_CLOEXEC) < 0)
		return -1;
	l->out_r = p[0];
	l->out_w = p[1];
	if (sys2(SYS_pipe2, p, O_CLOEXEC) < 0)
		return -1;
	l->err_r = p[0];
	l->err_w = p[1];
	/* Only the reading ends: writers must not get EAGAIN. */
	sys3(SYS_fcntl, l->out_r, F_SETFL, O_NONBLOCK);
	sys3(SYS_fcntl, l->err_r, F_SETFL, O_NONBLOCK);
	split(environment, ENV_SIZE, l->envp, MAX_ENV);
	return 0;
}

/* Reads the content of a pipe into a bounded buffer and counts dropped bytes. */
static void collect(int fd, char *buffer, u32 *len, u32 size, u32 *dropped)
{
	char spill[4096];
	/* Bounded, so that a command that never stops writing cannot block the lane. */
	for (int i = 0; i < 64; i++) {
		u32 room = size - *len;
		long n = room ? sys3(SYS_read, fd, buffer + *len, room)
			      : sys3(SYS_read, fd, spill, sizeof spill);
		if (n <= 0)
			return;
		if (room)
			*len += (u32)n;
		else
			*dropped += (u32)n;
	}
}

static void drain(struct lane *l, struct slot *s)
{
	collect(l->out_r, s->out, &s->out_len, OUT_SIZE, &s->dropped);
	collect(l->err_r, s->errout, &s->err_len, ERR_SIZE, &s->dropped);
}

/* Returns whether the output has a complete line "tare-probe/1 TOKEN …". */
static int probe_reported(const struct slot *s)
{
	static const char prefix[] = "tare-probe/1 ";
	u32 want = (u32)strlen_(s->token);
	for (u32 line = 0; line < s->out_len;) {
		u32 end = line;
		while (end < s->out_len && s->out[end] != '\n')
			end++;
		if (end == s->out_len)
			return 0;
		u32 i = line, j = 0;
		while (prefix[j] && i < end && s->out[i] == prefix[j])
			i++, j++;
		if (!prefix[j] && want > 0) {
			u32 k = 0;
			while (k < want && i < end && s->out[i] == s->token[k])
				i++, k++;
			if (k == want && i < end && s->out[i] == ' ')
				return 1;
		}
		line = end + 1;
	}
	return 0;
}

/* The command has ended or was sent SIGKILL. If it does not end because it is blocked in
 * the kernel, reap_orphans reaps it later and the lane continues. */
static void reap_call(struct lane *l, struct slot *s)
{
	struct rusage ru;
	memset(&ru, 0, sizeof ru);
	long pid = 0;
	for (int i = 0; i < 2000 && pid == 0; i++) {
		pid = sys4(SYS_wait4, l->call_pid, &s->status, WNOHANG, &ru);
		if (pid == 0) {
			struct timespec pause = {0, 1000000};
			sys4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, 0);
		}
	}
	if (pid == l->call_pid) {
		s->user = (u64)ru.user.sec * 1000000000u + (u64)ru.user.usec * 1000u;
		s->sys = (u64)ru.sys.sec * 1000000000u + (u64)ru.sys.usec * 1000u;
		s->maxrss = (u64)ru.maxrss * 1024u;
	}
	close_fd(&l->call_fd);
	l->call_pid = 0;
}

static void reap_watched(struct lane *l, struct slot *s)
{
	i32 status = 0;
	if (sys4(SYS_wait4, s->watch, &status, WNOHANG, 0) == s->watch) {
		s->workload_status = status;
		s->workload_known = 1;
	}
	close_fd(&l->watch_fd);
}

static void reap_orphans(void)
{
	while (sys4(SYS_wait4, -1, 0, WNOHANG, 0) > 0)
		;
}

/* Waits until all needs are met, the time is up, or tare aborts. It then kills the
 * command, if it still runs, and its process group. */
static void await(struct lane *l, struct slot *s, u32 need)
{
	u64 deadline = s->start + s->timeout;
	set_urgent(l, 1);
	while (need) {
		u64 t = now();
		if (t >= deadline) {
			fail(s, STAGE_TIMEOUT, -ETIMEDOUT);
			break;
		}
		struct timespec left = {(i64)((deadline - t) / 1000000000u), (i64)((deadline - t) % 1000000000u)};
		struct pollfd p[5] = {
			{need & NEED_CALL ? l->call_fd : -1, POLLIN, 0},
			{need & NEED_EXIT ? l->watch_fd : -1, POLLIN, 0},
			{l->out_r, POLLIN, 0},
			{l->err_r, POLLIN, 0},
			{FD_ABORT, POLLIN, 0},
		};
		if (sys5(SYS_ppoll, p, 5, &left, 0, 8) < 0)
			continue;
		t = now();
		if (p[0].revents) {
			s->returned = t;
			reap_call(l, s);
			need &= ~(u32)NEED_CALL;
			if (s->status != 0)
				need = 0; /* a failed command ends the wait */
		}
		if (p[1].revents) {
			s->exited = t;
			reap_watched(l, s);
			need &= ~(u32)NEED_EXIT;
		}
		if (p[2].revents) {
			collect(l->out_r, s->out, &s->out_len, OUT_SIZE, &s->dropped);
			if ((need & NEED_READY) && probe_reported(s)) {
				s->seen = t;
				need &= ~(u32)NEED_READY;
			}
		}
		if (p[3].revents)
			collect(l->err_r, s->errout, &s->err_len, ERR_SIZE, &s->dropped);
		if (need && p[4].revents) {
			fail(s, STAGE_ABORT, -EINTR);
			break;
		}
	}
	s->missing = need;
	if (l->call_pid > 0) {
		sys2(SYS_kill, -l->call_pid, SIGKILL);
		sys2(SYS_kill, l->call_pid, SIGKILL);
		reap_call(l, s);
	}
	drain(l, s);
}

/* Makes a child of a lane an ordinary process. SCHED_RESET_ON_FORK resets the priority,
 * but not the timer slack, which is 0 under SCHED_FIFO (since kernel 6.12), nor the CPU
 * affinity of a pinned lane. */
static void make_ordinary(const struct lane *l)
{
	if (l->slack > 0)
		sys2(SYS_prctl, PR_SET_TIMERSLACK, l->slack);
	if (l->cpus_size > 0)
		sys3(SYS_sched_setaffinity, 0, l->cpus_size, l->cpus);
}

/* Runs in the child of a vfork, which shares memory with the lane: the error number of a
 * failed exec needs no pipe. */
__attribute__((noreturn, noinline)) static void become(struct lane *l, struct slot *s)
{
	make_ordinary(l);
	sys2(SYS_setpgid, 0, 0);
	sys3(SYS_dup3, l->null_fd, 0, 0);
	sys3(SYS_dup3, l->out_w, 1, 0);
	sys3(SYS_dup3, l->err_w, 2, 0);
	long r = sys3(SYS_execve, l->argv[0], l->argv, l->envp);
	fail(s, STAGE_EXEC, r);
	die(127);
}

/* The vfork itself. It is a separate function because the child uses its stack frame
 * until it execs. Returns the pid of the child, which has called exec. */
__attribute__((noinline)) static long spawn(struct lane *l, struct slot *s)
{
	long pid = sys5(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, 0, &l->call_fd, 0, 0);
	if (pid == 0)
		become(l, s);
	return pid;
}

static void exec_command(struct lane *l, struct slot *s)
{
	s->start = now();
	long pid = spawn(l, s);
	s->spawned = now();
	if (pid < 0) {
		fail(s, STAGE_SPAWN, pid);
		return;
	}
	l->call_pid = (i32)pid;
	await(l, s, s->stage == STAGE_NONE ? s->need | NEED_CALL : NEED_CALL);
}

/* Stores the pidfd of a workload from its start, since its pid may be reused after it is
 * reaped. */
static void keep_workload(struct lane *l, struct slot *s, i32 pid, int fd)
{
	close_fd(&l->work_fd);
	l->work_fd = fd;
	l->work_pid = pid;
	s->pid = pid;
}

static void spawn_workload(struct lane *l, struct slot *s)
{
	s->start = now();
	long pid = spawn(l, s);
	s->spawned = s->returned = now();
	s->pid = 0;
	if (pid < 0) {
		fail(s, STAGE_SPAWN, pid);
		return;
	}
	if (s->stage != STAGE_NONE) {
		close_fd(&l->call_fd); /* exec failed */
		return;
	}
	keep_workload(l, s, (i32)pid, l->call_fd);
	l->call_fd = -1;
	await(l, s, s->need);
}

static void kill_workload(struct lane *l, struct slot *s)
{
	s->start = now();
	long r = sys4(SYS_pidfd_send_signal, l->work_fd, s->signal, 0, 0);
	s->returned = now();
	if (r < 0) {
		fail(s, r == -ESRCH ? STAGE_GONE : STAGE_KILL, r);
		return;
	}
	await(l, s, s->need);
}

#endif
