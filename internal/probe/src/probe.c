/*
 * The probe is the workload with which tare measures runtimes, as small as a
 * process can be. At its first instruction it reads CLOCK_MONOTONIC and prints
 * the time in one line. It then sleeps until SIGTERM and exits at once with 0.
 *
 *	probe TOKEN		prints "tare-probe/1 TOKEN NANOSECONDS\n"
 *	probe --exit TOKEN	the same, but exits instead of sleeping
 *	probe pause		only sleeps, also if called by that name: pause process of a pod
 *	probe TOKEN PROGRAM ARG...	prints the line and execs the program (become.h)
 *
 * Run by exec in a container, it is a load of a known size (load.h) or works on
 * files of a sandbox (storage.h). SIGTERM ends it like any process:
 *
 *	probe hold BYTES SECONDS	holds anonymous memory
 *	probe spin MILLICPUS SECONDS	uses a part of a CPU
 *	probe fill BYTES FILE...	writes files of a size
 *	probe evict FILE...		evicts files from the page cache
 *	probe fs PATH...		prints the result of statfs(2)
 *	probe direct FILE		tries O_DIRECT
 *	probe in FOLDER PROGRAM ARG...	execs a program in a folder (in.h)
 *	probe serve PORT [NAME=NUMBER...]	is a tiny HTTP server (serve.h)
 *
 * A line is written with one write(2), so lines of several probes on one
 * pipe never mix.
 */
#include "become.h"
#include "in.h"
#include "load.h"
#include "serve.h"
#include "storage.h"

static void handle(void);

/* Runs the command of the first argument; returns if it is not a command. */
static void command(long argc, char **argv)
{
	if (same(argv[1], "hold") || same(argv[1], "spin"))
		load(argc, argv);
	if (same(argv[1], "fill"))
		fill(argv + 2);
	if (same(argv[1], "evict"))
		evict(argv + 2);
	if (same(argv[1], "fs"))
		file_systems(argv + 2);
	if (same(argv[1], "direct"))
		direct(argv + 2);
	if (same(argv[1], "in"))
		in(argc - 2, argv + 2);
	if (same(argv[1], "serve")) {
		handle();
		serve(argc - 2, argv + 2);
	}
}

__attribute__((noreturn)) static void leave(int signal)
{
	(void)signal;
	for (;;)
		sys1(SYS_exit_group, 0);
}

/* Never runs while the probe sleeps, since signals are blocked and waited for. But
 * Kata's agent reads SigCgt and sends SIGKILL instead of SIGTERM to a first process
 * without a handler. */
static void handle(void)
{
	struct {
		void (*handler)(int);
		u64 flags;
		void (*restorer)(int);
		u64 mask;
	} action = {leave, SA_RESTORER, leave, 0};
	sys4(SYS_rt_sigaction, SIGTERM, &action, 0, 8);
	sys4(SYS_rt_sigaction, SIGINT, &action, 0, 8);
}

/* Returns whether this is the pause process of a pod. It prints nothing, since in
 * gVisor's sandboxes it has no standard output. CRI-O calls it /pause. */
static int holds_pod(long argc, char **argv)
{
	return argc > 0 && argc < 3 && (same(argv[argc - 1], "pause") || same(argv[argc - 1], "/pause"));
}

static void report(const char *token, u64 first)
{
	if (strlen_(token) > 128)
		sys1(SYS_exit_group, 2);
	char line[192];
	char *p = put(line, "tare-probe/1 ");
	p = put(p, token);
	*p++ = ' ';
	p = put_number(p, first);
	*p++ = '\n';
	if (sys3(SYS_write, 1, line, p - line) != p - line)
		sys1(SYS_exit_group, 3);
}

/* Runs a command or execs a program, with the signals that the probe inherited, except
 * for those that it waits for itself. */
__attribute__((noreturn)) static void other(long argc, char **argv, u64 first)
{
	u64 dfl[4] = {0}; /* SIG_DFL, no flags, no restorer, empty mask */
	u64 term = (1ul << (SIGTERM - 1)) | (1ul << (SIGINT - 1));
	sys4(SYS_rt_sigaction, SIGTERM, dfl, 0, 8);
	sys4(SYS_rt_sigaction, SIGINT, dfl, 0, 8);
	sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &term, 0, sizeof term);
	command(argc, argv);
	report(argv[1], first);
	become(argv + 2, argv + argc + 1);
}

__attribute__((noreturn, used)) void probe(long *stack)
{
	u64 first = now();

	long argc = stack[0];
	char **argv = (char **)(stack + 1);
	if (argc > 2 && argv[1][0] != '-')
		other(argc, argv, first);

	/* Process 1 of a PID namespace only gets signals that it waits for. They are blocked
	 * before the line is written, so that a SIGTERM right after the line is not lost. */
	u64 term = (1ul << (SIGTERM - 1)) | (1ul << (SIGINT - 1));
	sys4(SYS_rt_sigprocmask, SIG_BLOCK, &term, 0, sizeof term);
	handle();
	if (!holds_pod(argc, argv))
		report(argc > 1 ? argv[argc - 1] : "-", first);
	if (argc < 3)
		while (sys4(SYS_rt_sigtimedwait, &term, 0, 0, sizeof term) < 0)
			;
	leave(0);
}

TARE_START(probe);
