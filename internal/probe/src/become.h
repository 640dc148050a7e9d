/*
 * The probe in front of the user's program: it reports its start and then execs the
 * program.
 */
#ifndef TARE_BECOME_H
#define TARE_BECOME_H

#include "say.h"

enum { EACCES = 13, ENOTDIR = 20, LONGEST_PATH = 4096 };

/* Returns the value of a variable, or 0. */
static const char *variable(char **environment, const char *name)
{
	u64 n = strlen_(name);
	for (; *environment; environment++) {
		u64 i = 0;
		while (i < n && (*environment)[i] == name[i])
			i++;
		if (i == n && (*environment)[n] == '=')
			return *environment + n + 1;
	}
	return 0;
}

/* Like execvp(3): executes the program in the first folder of PATH that has it. Returns
 * -EACCES for a program without permission only if no other folder has it. Returns
 * -errno. */
static long search(const char *program, char **words, char **environment)
{
	const char *path = variable(environment, "PATH");
	if (!path)
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char file[LONGEST_PATH];
	long told = -ENOENT;
	for (;;) {
		u64 n = 0;
		while (path[n] && path[n] != ':')
			n++;
		if (n + strlen_(program) + 2 <= LONGEST_PATH) {
			char *p = file;
			for (u64 i = 0; i < n; i++)
				*p++ = path[i];
			if (n)
				*p++ = '/';
			*put(p, program) = 0;
			long r = sys3(SYS_execve, file, words, environment);
			if (r == -EACCES)
				told = r;
			else if (r != -ENOENT && r != -ENOTDIR)
				return r;
		}
		if (!path[n])
			return told;
		path += n + 1;
	}
}

/* words are PROGRAM ARGUMENT...; the environment follows. The exit status of a failed
 * exec is that of a shell: 127 for a missing program, 126 for other errors. */
__attribute__((noreturn)) static void become(char **words, char **environment)
{
	int named = 0;
	for (const char *s = words[0]; *s; s++)
		named |= *s == '/';
	long r = named ? sys3(SYS_execve, words[0], words, environment) : search(words[0], words, environment);
	const char *start = "tare-probe: cannot run ", *why = r == -ENOENT ? ": no such program: errno " : ": errno ";
	char number[24];
	char *end = put_number(number, (u64)-r);
	*end++ = '\n';
	sys3(SYS_write, 2, start, strlen_(start));
	sys3(SYS_write, 2, words[0], strlen_(words[0]));
	sys3(SYS_write, 2, why, strlen_(why));
	sys3(SYS_write, 2, number, end - number);
	leave_with(r == -ENOENT ? 127 : 126);
}

#endif
