/*
 * The kernel interface without a C library: system calls and the few types that the
 * probe and the lane need, for x86_64 and aarch64. A C library would be most of the size
 * of these programs, and would run before their first instruction.
 *
 * Numbers and layouts are those of the kernel's uapi headers, which the build does not
 * need.
 */
#ifndef TARE_SYS_H
#define TARE_SYS_H

typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;

_Static_assert(sizeof(long) == 8, "64-bit only");

#if defined(__x86_64__)
enum {
	SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_mmap = 9,
	SYS_rt_sigprocmask = 14, SYS_getpid = 39, SYS_exit = 60, SYS_kill = 62,
	SYS_fcntl = 72, SYS_chdir = 80, SYS_setpgid = 109, SYS_rt_sigtimedwait = 128,
	SYS_sched_setscheduler = 144, SYS_setpriority = 141, SYS_pivot_root = 155,
	SYS_prctl = 157, SYS_mount = 165, SYS_umount2 = 166, SYS_futex = 202,
	SYS_clock_gettime = 228, SYS_exit_group = 231, SYS_openat = 257, SYS_mkdirat = 258,
	SYS_unlinkat = 263, SYS_ppoll = 271, SYS_dup3 = 292, SYS_pipe2 = 293,
	SYS_setns = 308, SYS_wait4 = 61, SYS_execve = 59, SYS_clone = 56,
	SYS_pidfd_open = 434, SYS_clone3 = 435, SYS_getppid = 110, SYS_clock_nanosleep = 230,
	SYS_rt_sigaction = 13, SYS_munmap = 11, SYS_sched_setaffinity = 203, SYS_sched_getaffinity = 204,
	SYS_pidfd_send_signal = 424, SYS_close_range = 436, SYS_madvise = 28,
	SYS_setuid = 105, SYS_capget = 125, SYS_capset = 126, SYS_setgid = 106, SYS_setgroups = 116, SYS_fsync = 74, SYS_ftruncate = 77, SYS_fchmod = 91, SYS_statfs = 137, SYS_fadvise64 = 221,
	SYS_socket = 41, SYS_bind = 49, SYS_listen = 50, SYS_accept4 = 288, SYS_setsockopt = 54,
	SYS_epoll_create1 = 291, SYS_epoll_ctl = 233, SYS_epoll_pwait = 281,
};

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

/* Passes the stack pointer at entry to `entry`, which never returns. */
#define TARE_START(entry)                                                    \
	__asm__(".globl _start\n"                                            \
		"_start:\n"                                                  \
		"xor %ebp,%ebp\n"                                            \
		"mov %rsp,%rdi\n"                                            \
		"and $-16,%rsp\n"                                            \
		"call " #entry "\n"                                          \
		"hlt\n")

#elif defined(__aarch64__)
enum {
	SYS_read = 63, SYS_write = 64, SYS_close = 57, SYS_mmap = 222,
	SYS_rt_sigprocmask = 135, SYS_getpid = 172, SYS_exit = 93, SYS_kill = 129,
	SYS_fcntl = 25, SYS_chdir = 49, SYS_setpgid = 154, SYS_rt_sigtimedwait = 137,
	SYS_sched_setscheduler = 119, SYS_setpriority = 140, SYS_pivot_root = 41,
	SYS_prctl = 167, SYS_mount = 40, SYS_umount2 = 39, SYS_futex = 98,
	SYS_clock_gettime = 113, SYS_exit_group = 94, SYS_openat = 56, SYS_mkdirat = 34,
	SYS_unlinkat = 35, SYS_ppoll = 73, SYS_dup3 = 24, SYS_pipe2 = 59,
	SYS_setns = 268, SYS_wait4 = 260, SYS_execve = 221, SYS_clone = 220,
	SYS_pidfd_open = 434, SYS_clone3 = 435, SYS_getppid = 173, SYS_clock_nanosleep = 115,
	SYS_rt_sigaction = 134, SYS_munmap = 215, SYS_sched_setaffinity = 122, SYS_sched_getaffinity = 123,
	SYS_pidfd_send_signal = 424, SYS_close_range = 436, SYS_madvise = 233,
	SYS_setuid = 146, SYS_capget = 90, SYS_capset = 91, SYS_setgid = 144, SYS_setgroups = 159, SYS_fsync = 82, SYS_ftruncate = 46, SYS_fchmod = 52, SYS_statfs = 43, SYS_fadvise64 = 223,
	SYS_socket = 198, SYS_bind = 200, SYS_listen = 201, SYS_accept4 = 242, SYS_setsockopt = 208,
	SYS_epoll_create1 = 20, SYS_epoll_ctl = 21, SYS_epoll_pwait = 22,
};

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#define TARE_START(entry)                                                    \
	__asm__(".globl _start\n"                                            \
		"_start:\n"                                                  \
		"mov x29,#0\n"                                               \
		"mov x30,#0\n"                                               \
		"mov x0,sp\n"                                                \
		"bl " #entry "\n"                                            \
		"brk #1\n")
#else
#error "tare's probe is written for x86_64 and aarch64"
#endif

#define sys0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define sys1(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define sys3(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys5(n, a, b, c, d, e) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

struct timespec {
	i64 sec;
	i64 nsec;
};

enum {
	CLOCK_MONOTONIC = 1,
	SIGINT = 2, SIGKILL = 9, SIGTERM = 15, SIGCHLD = 17,
	SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2, SA_RESTORER = 0x04000000,
	EINTR = 4, EAGAIN = 11, EBUSY = 16, EEXIST = 17, EINVAL = 22, ENOENT = 2, ESRCH = 3, ETIMEDOUT = 110,
	AT_FDCWD = -100,
};

static inline u64 now(void)
{
	/* A system call instead of the vDSO: it takes the same ~100 ns on every path, and
	 * needs no symbol lookup before the first stamp. */
	struct timespec t;
	sys2(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (u64)t.sec * 1000000000u + (u64)t.nsec;
}

static inline u64 strlen_(const char *s)
{
	u64 n = 0;
	while (s[n])
		n++;
	return n;
}

/* The compiler may call these for plain assignments and loops. */
void *memset(void *p, int c, u64 n);
void *memcpy(void *d, const void *s, u64 n);
void *memset(void *p, int c, u64 n)
{
	volatile u8 *b = p;
	while (n--)
		*b++ = (u8)c;
	return p;
}
void *memcpy(void *d, const void *s, u64 n)
{
	volatile u8 *a = d;
	const u8 *b = s;
	while (n--)
		*a++ = *b++;
	return d;
}

#endif
