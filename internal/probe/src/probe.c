/*
 * The probe is the workload that tare weighs runtimes with: as near to nothing
 * as a process can be. At its first instruction it reads CLOCK_MONOTONIC, says
 * so in one line, and sleeps until SIGTERM, on which it exits at once with 0.
 *
 *	probe TOKEN		prints "tare-probe/1 TOKEN NANOSECONDS\n"
 *	probe --exit TOKEN	the same, and exits instead of sleeping
 *
 * Run beside it by exec, it is a load of a known size (load.h), or tare's hand in
 * the files of a sandbox (storage.h); SIGTERM ends it as any process:
 *
 *	probe hold BYTES SECONDS	holds that much anonymous memory
 *	probe spin MILLICPUS SECONDS	uses that part of a CPU
 *	probe fill BYTES FILE...	writes files of that size
 *	probe evict FILE...		has the page cache let go of them
 *	probe fs PATH...		says what statfs(2) says of them
 *	probe direct FILE		tries O_DIRECT
 *	probe in FOLDER PROGRAM ARG...	becomes a program in that folder (in.h)
 *
 * A line is written with one write(2), so lines of several probes on one
 * pipe never mix.
 */
#include "in.h"
#include "load.h"
#include "storage.h"

__attribute__((noreturn)) static void command(long argc, char **argv, u64 blocked)
{
	u64 dfl[4] = {0}; /* SIG_DFL, no flags, no restorer, empty mask */
	sys4(SYS_rt_sigaction, SIGTERM, dfl, 0, 8);
	sys4(SYS_rt_sigaction, SIGINT, dfl, 0, 8);
	sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &blocked, 0, sizeof blocked);
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
	refuse("tare-probe: the commands are hold, spin, fill, evict, fs, direct and in\n");
}

__attribute__((noreturn)) static void leave(int signal)
{
	(void)signal;
	for (;;)
		sys1(SYS_exit_group, 0);
}

/* A handler that never runs, since the signals stay blocked and are waited for:
 * Kata's agent looks at SigCgt and sends SIGKILL in place of SIGTERM to a first
 * process that handles none. */
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

__attribute__((noreturn, used)) void probe(long *stack)
{
	u64 first = now();

	/* As process 1 of a PID namespace only signals that are waited for
	 * arrive; blocking before the line is written means that a SIGTERM sent
	 * on sight of the line is never lost. */
	u64 term = (1ul << (SIGTERM - 1)) | (1ul << (SIGINT - 1));
	sys4(SYS_rt_sigprocmask, SIG_BLOCK, &term, 0, sizeof term);

	long argc = stack[0];
	char **argv = (char **)(stack + 1);
	if (argc > 2 && argv[1][0] != '-')
		command(argc, argv, term);
	handle();
	int exits = argc > 2;
	const char *token = argc > 1 ? argv[argc - 1] : "-";
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

	if (!exits)
		while (sys4(SYS_rt_sigtimedwait, &term, 0, 0, sizeof term) < 0)
			;
	leave(0);
}

TARE_START(probe);
