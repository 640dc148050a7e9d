/*
 * The bare loop that tare's sampler is held against: files are opened once, and
 * each is read from its beginning, as anyone would write it in C.
 *
 *	preads FILE...		one pass for each byte on standard input;
 *				prints the nanoseconds of CPU time of each on a line,
 *				and 0, or the number of a file that failed
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char buffer[65536];

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	char byte;
	int *fds = calloc(argc, sizeof *fds);
	for (int i = 1; i < argc; i++) {
		fds[i] = open(argv[i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	while (read(0, &byte, 1) == 1) {
		int failed = 0;
		long long begin = now();
		for (int i = 1; i < argc; i++)
			if (pread(fds[i], buffer, sizeof buffer, 0) <= 0)
				failed = i;
		long long end = now();
		printf("%lld %d\n", end - begin, failed);
		fflush(stdout);
	}
	return 0;
}
