/*
 * A minimal loop for comparison with the measurements of tare: fork, exec and wait,
 * with a clock reading before and after.
 *
 *	loop fork|vfork COMMAND [ARG...]	one run per byte on standard input;
 *						prints the nanoseconds of each run
 *						on a line
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	char byte;
	if (argc < 3)
		return 2;
	int vforks = strcmp(argv[1], "vfork") == 0;
	while (read(0, &byte, 1) == 1) {
		int status = 0;
		long long begin = now();
		pid_t pid = vforks ? vfork() : fork();
		if (pid == 0) {
			int null = open("/dev/null", O_RDWR | O_CLOEXEC);
			dup2(null, 0);
			dup2(null, 1);
			execv(argv[2], argv + 2);
			_exit(127);
		}
		waitpid(pid, &status, 0);
		long long end = now();
		printf("%lld %d\n", end - begin, status);
		fflush(stdout);
	}
	return 0;
}
