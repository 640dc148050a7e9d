/*
 * Runs a program in a working folder.
 *
 *	in FOLDER PROGRAM ARGUMENT...	changes to the folder and execs the program
 *
 * Errors are printed on standard error. The exit status is then 127, as in a
 * shell for a program that it cannot run.
 */
#ifndef TARE_IN_H
#define TARE_IN_H

#include "say.h"

__attribute__((noreturn)) static void in_failed(const char *what, long errno)
{
	char line[96];
	char *p = put(line, "tare-probe: in: ");
	p = put(p, what);
	p = put(p, ": errno ");
	p = put_number(p, (u64)-errno);
	*p++ = '\n';
	sys3(SYS_write, 2, line, p - line);
	leave_with(127);
}

/* words are FOLDER PROGRAM ARGUMENT...; the environment follows. */
__attribute__((noreturn)) static void in(long count, char **words)
{
	if (count < 2)
		refuse("tare-probe: in FOLDER PROGRAM ARGUMENT...\n");
	long r = sys1(SYS_chdir, words[0]);
	if (r < 0)
		in_failed("the folder", r);
	r = sys3(SYS_execve, words[1], words + 1, words + count + 1);
	in_failed("the program", r);
}

#endif
