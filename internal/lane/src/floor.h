/*
 * The floor: a container made with only system calls, split into create, start
 * and remove like an OCI runtime. No runtime that does the same can be faster.
 *
 * create:  make the cgroups and write their limits; clone into new mount, PID,
 *          network, IPC and UTS namespaces; join the cgroups; pivot_root into
 *          the root file system; wait.
 * start:   let it exec the workload.
 * remove:  remove the cgroups. The namespaces end with their last process.
 *
 * A slot's arguments are a list of tagged strings:
 *
 *	"d" PATH          create this cgroup
 *	"w" PATH VALUE    write a limit
 *	"j" PATH          join: cgroup.procs of a v1 hierarchy
 *	"c" PATH          the v2 cgroup to clone into (kernel 5.7)
 *	"r" PATH          the root file system
 *	"b" PATH DIR      bind-mount a host folder on DIR in the root;
 *	                  DIR has no leading slash
 *	"o" PATH DIR      the same, read-only, without the mounts below PATH
 *	"p" DIR           the workload is a user's program: mount a /proc on DIR,
 *	                  with the files that control the machine read-only, and
 *	                  limit it to the default capabilities of engines
 *	"u" UID GID       user of the workload; default root
 *	"i" DIR           its working folder; default /
 *	"e" ""            use the lane's environment; default none
 *	"x" ARG...        the workload's argv: the rest of the list
 */
#ifndef TARE_FLOOR_H
#define TARE_FLOOR_H

#include "command.h"

enum {
	CLONE_NEWUTS = 0x04000000, CLONE_NEWIPC = 0x08000000,
	CLONE_NEWPID = 0x20000000, CLONE_NEWNET = 0x40000000,
	MS_RDONLY = 1, MS_NOSUID = 2, MS_NODEV = 4, MS_NOEXEC = 8, MS_REMOUNT = 32, MS_BIND = 4096, MS_REC = 16384, MS_PRIVATE = 1 << 18, MNT_DETACH = 2,
	AT_REMOVEDIR = 0x200,
	PR_CAPBSET_DROP = 24, CAPABILITY_VERSION_3 = 0x20080522,
};
#define CLONE_INTO_CGROUP 0x200000000ul

struct clone_args {
	u64 flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static long write_file(const char *path, const char *value)
{
	long fd = sys4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long r = sys3(SYS_write, fd, value, strlen_(value));
	sys1(SYS_close, fd);
	return r;
}

static u64 number(const char *s)
{
	u64 v = 0;
	while (*s >= '0' && *s <= '9')
		v = v * 10 + (u64)(*s++ - '0');
	return v;
}

static int tagged(const char *arg, char tag)
{
	return arg[0] == tag && arg[1] == 0;
}

/* Returns the next tag of the list. */
static char **next(char **a)
{
	return a + (tagged(*a, 'w') || tagged(*a, 'b') || tagged(*a, 'o') || tagged(*a, 'u') ? 3 : 2);
}

/* Makes the cgroups and sets their limits; returns the descriptor of the v2
 * cgroup, -1 where there is none, or -errno below that. */
static long make_cgroups(struct lane *l)
{
	long into = -1;
	for (char **a = l->argv; *a && a[1] && !tagged(*a, 'x'); a = next(a)) {
		long r = 0;
		if (tagged(*a, 'd'))
			r = sys3(SYS_mkdirat, AT_FDCWD, a[1], 0755);
		else if (tagged(*a, 'w'))
			r = write_file(a[1], a[2]);
		else if (tagged(*a, 'c'))
			r = into = sys4(SYS_openat, AT_FDCWD, a[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
		if (r < 0) {
			if (into >= 0)
				sys1(SYS_close, into);
			return r - 1;
		}
	}
	return into;
}

static long join_cgroups(struct lane *l)
{
	for (char **a = l->argv; *a && a[1] && !tagged(*a, 'x'); a = next(a)) {
		long r = tagged(*a, 'j') ? write_file(a[1], "0") : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static char **find(struct lane *l, char tag)
{
	for (char **a = l->argv; *a && a[1]; a = next(a)) {
		if (tagged(*a, tag))
			return a + 1;
		if (tagged(*a, 'x')) /* the rest belongs to the workload */
			return 0;
	}
	return 0;
}

/* Mounts a /proc on dir. Files in it that control the machine are mounted read-only over
 * themselves, because root can write to them without capabilities. Some of them do not
 * exist in every kernel. */
static long mount_proc(const char *dir)
{
	static const char *const ruling[] = {"sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "acpi", "asound"};
	const long quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	char path[256];
	u64 n = strlen_(dir);
	if (n + sizeof "/sysrq-trigger" > sizeof path)
		return -EINVAL;
	for (u64 i = 0; i < n; i++)
		path[i] = dir[i];
	path[n++] = '/';
	long r = sys5(SYS_mount, "proc", dir, "proc", quiet, 0);
	for (u64 i = 0; r == 0 && i < sizeof ruling / sizeof *ruling; i++) {
		for (u64 j = 0; j <= strlen_(ruling[i]); j++)
			path[n + j] = ruling[i][j];
		r = sys5(SYS_mount, path, path, 0, MS_BIND | MS_REC, 0);
		if (r == 0)
			r = sys5(SYS_mount, 0, path, 0, MS_BIND | MS_REMOUNT | MS_RDONLY | quiet, 0);
		else if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* The default capabilities of engines without CAP_MKNOD: the floor has no devices
 * cgroup, so a new device node would access the machine's device. The numbers are those
 * of linux/capability.h: chown, dac_override, fowner, fsetid, kill, setgid, setuid,
 * setpcap, net_bind_service, net_raw, sys_chroot, audit_write, setfcap. */
static const u64 engine_capabilities = 1u << 0 | 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 |
				       1u << 8 | 1u << 10 | 1u << 13 | 1u << 18 | 1u << 29 | 1u << 31;

/* Limits the calling process and its children to these capabilities. */
static long drop_capabilities(void)
{
	for (u64 c = 0; c < 64; c++) {
		if (engine_capabilities >> c & 1)
			continue;
		long r = sys2(SYS_prctl, PR_CAPBSET_DROP, c);
		if (r == -EINVAL) /* beyond the last capability of the kernel */
			break;
		if (r < 0)
			return r;
	}
	struct { u32 version; i32 pid; } head = {CAPABILITY_VERSION_3, 0};
	struct { u32 effective, permitted, inheritable; } sets[2];
	long r = sys2(SYS_capget, &head, sets);
	for (u64 i = 0; i < 2; i++) {
		sets[i].permitted &= (u32)(engine_capabilities >> 32 * i);
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0; /* a root process would get them on exec */
	}
	return r < 0 ? r : sys2(SYS_capset, &head, sets);
}

/* Mounts everything in the root before pivot_root. Mounts below a read-only folder are
 * left out, because they would stay writable. */
static long mount_all(struct lane *l)
{
	long r = 0;
	for (char **a = l->argv; r == 0 && *a && a[1] && !tagged(*a, 'x'); a = next(a)) {
		if (tagged(*a, 'b') || tagged(*a, 'o'))
			r = sys5(SYS_mount, a[1], a[2], 0, MS_BIND | (tagged(*a, 'o') ? 0 : MS_REC), 0);
		if (r == 0 && tagged(*a, 'o'))
			r = sys5(SYS_mount, 0, a[2], 0, MS_BIND | MS_REMOUNT | MS_RDONLY, 0);
		if (tagged(*a, 'p'))
			r = mount_proc(a[1]);
	}
	return r;
}

/* Sets the working directory, the user and the capabilities of the workload. */
static long take_place(struct lane *l)
{
	char **user = find(l, 'u'), **dir = find(l, 'i');
	long r = dir ? sys1(SYS_chdir, dir[0]) : 0;
	if (r == 0 && find(l, 'p'))
		r = drop_capabilities();
	if (r == 0 && user) {
		r = sys2(SYS_setgroups, 0, 0);
		if (r == 0)
			r = sys1(SYS_setgid, number(user[1]));
		if (r == 0)
			r = sys1(SYS_setuid, number(user[0]));
	}
	return r;
}

static long enter_root(struct lane *l, const char *root)
{
	long r = sys5(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0);
	if (r == 0)
		r = sys5(SYS_mount, root, root, 0, MS_BIND | MS_REC, 0);
	if (r == 0)
		r = sys1(SYS_chdir, root);
	if (r == 0)
		r = mount_all(l);
	if (r == 0)
		r = sys2(SYS_pivot_root, ".", ".");
	if (r == 0)
		r = sys2(SYS_umount2, ".", MNT_DETACH);
	if (r == 0)
		r = sys1(SYS_chdir, "/");
	return r;
}

__attribute__((noreturn)) static void inside(struct lane *l, struct slot *s, int gate, int sync)
{
	char **workload = find(l, 'x'), **root = find(l, 'r');
	make_ordinary(l);
	long r = join_cgroups(l);
	if (r < 0) {
		fail(s, STAGE_CGROUP, r);
		die(126);
	}
	r = enter_root(l, root[0]);
	if (r == 0)
		r = take_place(l);
	if (r < 0) {
		fail(s, STAGE_ROOT, r);
		die(126);
	}
	sys3(SYS_dup3, l->null_fd, 0, 0);
	sys3(SYS_dup3, l->out_w, 1, 0);
	sys3(SYS_dup3, l->err_w, 2, 0);
	char byte = 'c';
	if (sys3(SYS_write, sync, &byte, 1) != 1)
		die(126);
	if (gate >= 0 && sys3(SYS_read, gate, &byte, 1) != 1)
		die(126); /* the lane has ended */
	char *none[] = {0};
	r = sys3(SYS_execve, workload[0], workload, find(l, 'e') ? l->envp : none);
	fail(s, STAGE_EXEC, r);
	die(127);
}

/* Waits for the next event on the sync pipe: 1 for a byte, 0 for end of file. */
static long await_sync(struct lane *l, struct slot *s)
{
	set_urgent(l, 1);
	u64 deadline = s->start + s->timeout;
	for (;;) {
		u64 t = now();
		if (t >= deadline) {
			fail(s, STAGE_TIMEOUT, -ETIMEDOUT);
			return -1;
		}
		struct timespec left = {(i64)((deadline - t) / 1000000000u), (i64)((deadline - t) % 1000000000u)};
		struct pollfd p[2] = {{l->sync_r, POLLIN, 0}, {FD_ABORT, POLLIN, 0}};
		if (sys5(SYS_ppoll, p, 2, &left, 0, 8) < 0)
			continue;
		if (p[0].revents) {
			char byte;
			return sys3(SYS_read, l->sync_r, &byte, 1);
		}
		if (p[1].revents) {
			fail(s, STAGE_ABORT, -EINTR);
			return -1;
		}
	}
}

static void floor_clone(struct lane *l, struct slot *s, int gated)
{
	int gate[2] = {-1, -1}, sync[2];
	close_fd(&l->gate_w);
	close_fd(&l->sync_r);
	s->pid = 0;
	s->start = now();
	if (!find(l, 'x') || !find(l, 'r')) {
		fail(s, STAGE_ROOT, -ENOENT);
		return;
	}
	long into = make_cgroups(l);
	if (into < -1) {
		fail(s, STAGE_CGROUP, into + 1);
		return;
	}
	int pidfd = -1;
	long r = sys2(SYS_pipe2, sync, O_CLOEXEC);
	if (r == 0 && gated && (r = sys2(SYS_pipe2, gate, O_CLOEXEC)) < 0) {
		sys1(SYS_close, sync[0]);
		sys1(SYS_close, sync[1]);
	}
	if (r < 0) {
		if (into >= 0)
			sys1(SYS_close, into);
		fail(s, STAGE_SPAWN, r);
		return;
	}
	struct clone_args args;
	memset(&args, 0, sizeof args);
	args.pidfd = (u64)&pidfd;
	args.flags = CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	args.exit_signal = SIGCHLD;
	if (into >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (u64)into;
	}
	long pid = sys2(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		if (gated)
			sys1(SYS_close, gate[1]); /* so that the end of the lane is noticed */
		inside(l, s, gate[0], sync[1]);
	}
	s->spawned = now();
	sys1(SYS_close, sync[1]);
	close_fd(&gate[0]);
	if (into >= 0)
		sys1(SYS_close, into);
	l->sync_r = sync[0];
	l->gate_w = gate[1];
	if (pid < 0) {
		fail(s, STAGE_SPAWN, pid);
		return;
	}
	keep_workload(l, s, (i32)pid, pidfd);
	if (await_sync(l, s) == 1)
		return;
	/* End of file before the byte: the child failed and reported its step. */
	fail(s, STAGE_ROOT, -ESRCH);
}

/* Waits for the end of the sync pipe: exec has happened, or failed and reported that. */
static void floor_executed(struct lane *l, struct slot *s)
{
	await_sync(l, s);
	s->returned = now();
	close_fd(&l->gate_w);
	close_fd(&l->sync_r);
	if (s->stage == STAGE_NONE)
		await(l, s, s->need);
}

static void floor_create(struct lane *l, struct slot *s)
{
	floor_clone(l, s, 1);
	s->returned = now();
}

static void floor_start(struct lane *l, struct slot *s)
{
	char byte = 's';
	s->start = now();
	long r = sys3(SYS_write, l->gate_w, &byte, 1);
	if (r != 1) {
		fail(s, STAGE_GONE, r);
		return;
	}
	floor_executed(l, s);
}

static void floor_run(struct lane *l, struct slot *s)
{
	floor_clone(l, s, 0);
	if (s->stage == STAGE_NONE)
		floor_executed(l, s);
}

/* A cgroup stays busy for a moment after its last process was reaped. */
static void floor_remove(struct lane *l, struct slot *s)
{
	s->start = now();
	for (char **a = l->argv; *a && a[1]; a += 2) {
		for (;;) {
			long r = sys3(SYS_unlinkat, AT_FDCWD, a[1], AT_REMOVEDIR);
			if (r == 0)
				break;
			if (r != -EBUSY || now() - s->start > s->timeout) {
				fail(s, STAGE_REMOVE, r);
				return;
			}
			struct timespec pause = {0, 20000};
			sys4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, 0);
		}
	}
	s->returned = now();
}

#endif
