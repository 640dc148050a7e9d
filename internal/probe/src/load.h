/*
 * Loads of a known size, for calibration.
 *
 *	hold BYTES SECONDS	writes to every page of BYTES of anonymous memory
 *				without huge pages, prints "tare-hold/1 BYTES
 *				NANOSECONDS" (the time to write), sleeps, and prints
 *				"tare-held/1 NANOSECONDS" (the time asleep)
 *	spin MILLICPUS SECONDS	uses MILLICPUS/1000 CPUs, at most one, in periods of
 *				10 ms (100 under gVisor); prints "tare-spun/1 CPU WALL", in ns
 *
 * SECONDS may have up to nine digits after a point. Exit 0; 2 with a line on
 * standard error for invalid arguments or missing memory.
 */
#ifndef TARE_LOAD_H
#define TARE_LOAD_H

#include "say.h"

enum {
	CLOCK_PROCESS_CPUTIME_ID = 2, TIMER_ABSTIME = 1,
	MADV_NOHUGEPAGE = 15,
};

#define PERIOD 10000000ul /* ns */
#define PIECE 30000ul	  /* ns of work between two reads of the clock */
/* The same if reading the clock and sleeping are expensive. */
#define DEAR_PERIOD 100000000ul
#define DEAR_PIECE 2000000ul
#define STEP 5000000ul	  /* ns: no exact clock has a coarser resolution */
#define LONGEST 1000000000000000l /* ns: eleven days */

static void sleep_until(u64 t)
{
	struct timespec at = {(i64)(t / 1000000000u), (i64)(t % 1000000000u)};
	while (sys4(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0) == -EINTR)
		;
}

__attribute__((noreturn)) static void hold(i64 bytes, i64 duration)
{
	if (bytes <= 0)
		refuse("tare-probe: hold BYTES SECONDS: BYTES is a whole number above 0\n");
	u64 begun = now();
	long at = map(bytes);
	if (at < 0)
		refuse("tare-probe: hold: the kernel refused to map that much memory\n");
	/* A huge page would use more than the requested memory. An error means that the
	 * kernel has no huge pages. */
	sys3(SYS_madvise, at, bytes, MADV_NOHUGEPAGE);
	for (i64 i = 0; i < bytes; i += 4096)
		*(volatile u8 *)(at + i) = 1;
	u64 filled = now();

	char line[64];
	char *p = put_number(put(line, "tare-hold/1 "), (u64)bytes);
	*p++ = ' ';
	p = put_number(p, filled - begun);
	*p++ = '\n';
	print(line, p);
	sleep_until(filled + (u64)duration);
	p = put_number(put(line, "tare-held/1 "), now() - filled);
	*p++ = '\n';
	print(line, p);
	leave_with(0);
}

static void work(u64 turns)
{
	for (volatile u64 i = 0; i < turns; i++)
		;
}

static u64 cpu_clock(void)
{
	struct timespec t;
	sys2(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t);
	return (u64)t.sec * 1000000000u + (u64)t.nsec;
}

/* CPU time by the kernel's clock, if that is exact. gVisor's clock has steps of 10 ms,
 * too coarse for a duty cycle. There it is the duration of the pieces of work, and an
 * interrupted piece counts as the one before. */
struct meter {
	u64 turns;  /* iterations per piece of work */
	u64 before; /* on the CPU clock, at the start */
	u64 least;  /* shortest duration of a piece (ns); 0 if the CPU clock is exact */
	u64 usual;  /* duration of the last uninterrupted piece (ns) */
	u64 used;   /* ns */
};

static u64 measure(u64 turns)
{
	u64 t = now();
	work(turns);
	return now() - t;
}

static void calibrate(struct meter *m)
{
	m->before = cpu_clock();
	m->turns = 64;
	while (measure(m->turns) < PIECE)
		m->turns += m->turns / 4;
	u64 used = cpu_clock() - m->before;
	if (used > 0 && used < STEP)
		return;
	do {
		m->turns += m->turns / 4;
		m->least = m->usual = measure(m->turns);
		m->used += m->least;
	} while (m->least < DEAR_PIECE);
}

/* Does one piece of work that starts at t, with a remaining budget of left. Returns the
 * time of its end. */
static u64 advance(struct meter *m, u64 t, u64 left)
{
	if (!m->least) {
		work(m->turns);
		m->used = cpu_clock() - m->before;
		return now();
	}
	if (left < m->usual) { /* a part of a piece */
		work(m->turns * left / m->usual + 1);
		u64 done = now();
		m->used += 2 * (done - t) < 3 * left ? done - t : left + 1;
		return done;
	}
	work(m->turns);
	u64 done = now(), took = done - t;
	if (took < m->least)
		m->least = took;
	if (2 * took < 3 * m->least)
		m->usual = took;
	m->used += m->usual;
	return done;
}

/* Uses this much additional CPU time. */
static void spend(struct meter *m, u64 ns)
{
	if (!ns)
		return;
	if (!m->least)
		m->used = cpu_clock() - m->before;
	for (u64 t = now(), end = m->used + ns; m->used < end;)
		t = advance(m, t, end - m->used);
}

/* The CPU time used since the start decides how long to work. So later periods correct
 * an excess, or a deficit on a busy machine. */
__attribute__((noreturn)) static void spin(i64 millis, i64 duration)
{
	if (millis <= 0 || millis > 1000)
		refuse("tare-probe: spin MILLICPUS SECONDS: MILLICPUS is a whole number from 1 to 1000\n");
	u64 begun = now(), end = begun + (u64)duration, share = (u64)millis;
	struct meter m = {0, 0, 0, 0, 0};
	calibrate(&m);
	u64 length = m.least ? DEAR_PERIOD : PERIOD;
	for (u64 t = now(), period = begun; t < end;) {
		period += length;
		/* A wake-up can take longer than a period's share. */
		if (period < begun + m.used / share * 1000)
			period = begun + m.used / share * 1000;
		if (period > end)
			period = end;
		u64 budget = (period - begun) / 1000 * share;
		while (t < end && m.used < budget)
			t = advance(&m, t, budget - m.used);
		if (t < period) {
			sleep_until(period);
			t = now();
			if (!m.least)
				m.used = cpu_clock() - m.before;
		} else {
			period = t; /* the CPU was busy */
		}
	}
	if (!m.least)
		m.used = cpu_clock() - m.before;
	char line[64];
	char *p = put_number(put(line, "tare-spun/1 "), m.used);
	*p++ = ' ';
	p = put_number(p, now() - begun);
	*p++ = '\n';
	print(line, p);
	leave_with(0);
}

__attribute__((noreturn)) static void load(long argc, char **argv)
{
	i64 duration = argc == 4 ? number(argv[3], 9) : -1;
	if (duration < 0 || duration > LONGEST)
		refuse("tare-probe: hold BYTES SECONDS or spin MILLICPUS SECONDS, at most 1000000 seconds\n");
	if (same(argv[1], "hold"))
		hold(number(argv[2], 0), duration);
	spin(number(argv[2], 0), duration);
}

#endif
