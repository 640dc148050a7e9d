/*
 * Files in a sandbox: fill them, evict them from the page cache, and inspect them.
 *
 *	fill BYTES FILE...	writes BYTES of random data to each file, in writes of
 *				1 MiB, then calls fsync and POSIX_FADV_DONTNEED. Creates
 *				missing files and their folder. Everyone can write to
 *				the file: in a folder that containers share, they may
 *				map root to different users. Creates nothing below
 *				/dev, where a missing device must not become a file in
 *				memory. Prints "tare-fill/1 FILES BYTES NANOSECONDS"
 *	evict FILE...		fsync and POSIX_FADV_DONTNEED; "tare-evict/1 FILES"
 *	fs PATH...		for each "tare-fs/1 TYPE SIZE FREE PATH": the type
 *				hexadecimal, sizes in bytes
 *	direct FILE		reads 4 KiB with O_DIRECT; "tare-direct/1 ERRNO": 0 if
 *				it works, else the error of a file that is readable
 *				without O_DIRECT
 *
 * An error at a file is printed on standard output as "tare-fill/1 error ERRNO
 * PATH", since some engines keep nothing else, and on standard error for people;
 * exit 1. Paths have at most 1024 bytes and no control characters. Other
 * arguments are rejected; exit 2.
 */
#ifndef TARE_STORAGE_H
#define TARE_STORAGE_H

#include "say.h"

enum {
	O_RDONLY = 0, O_WRONLY = 1, O_CREAT = 0100, O_TRUNC = 01000, O_CLOEXEC = 02000000,
#if defined(__x86_64__)
	O_DIRECT = 040000, O_NOFOLLOW = 0400000,
#else
	O_DIRECT = 0200000, O_NOFOLLOW = 0100000,
#endif
	EIO = 5, EROFS = 30,
	POSIX_FADV_DONTNEED = 4,
};

#define BLOCK (1l << 20)
#define LONGEST_PATH 1024

struct statfs {
	u64 type, bsize, blocks, bfree, bavail, files, ffree;
	i32 fsid[2];
	u64 namelen, frsize, flags, spare[4];
};

/* Validates the paths of a command and returns their number. */
static u64 paths(char **path)
{
	u64 n = 0;
	for (; path[n]; n++) {
		u64 length = strlen_(path[n]);
		if (length == 0 || length > LONGEST_PATH)
			refuse("tare-probe: a path has from 1 to 1024 bytes\n");
		for (u64 i = 0; i < length; i++)
			if ((u8)path[n][i] < ' ' || path[n][i] == 127)
				refuse("tare-probe: a path has no control characters\n");
	}
	if (n == 0)
		refuse("tare-probe: fill BYTES FILE..., evict FILE..., fs PATH... or direct FILE\n");
	return n;
}

static char *put_error(char *line, const char *verb, long r, const char *path)
{
	char *p = put(put(put(line, "tare-"), verb), "/1 error ");
	p = put(put_number(p, (u64)-r), " ");
	p = put(p, path);
	*p++ = '\n';
	return p;
}

__attribute__((noreturn)) static void stopped(const char *verb, long r, const char *path)
{
	char line[LONGEST_PATH + 64];
	print(line, put_error(line, verb, r, path));
	char *p = put(put(put(line, "tare-probe: "), verb), ": ");
	p = put_number(put(put(p, path), ": errno "), (u64)-r);
	*p++ = '\n';
	sys3(SYS_write, 2, line, p - line);
	leave_with(1);
}

static int below(const char *path, const char *folder)
{
	while (*folder && *path == *folder)
		path++, folder++;
	return !*folder;
}

/* Creates the folder of a file. */
static long make_folder(const char *path)
{
	char folder[LONGEST_PATH + 1];
	char *slash = 0;
	for (char *p = folder; (*p = *path); p++, path++)
		if (*p == '/')
			slash = p;
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	long r = sys3(SYS_mkdirat, AT_FDCWD, folder, 0755);
	return r == -EEXIST ? 0 : r;
}

static long open_to_fill(const char *path)
{
	long flags = O_WRONLY | O_TRUNC | O_CLOEXEC;
	if (below(path, "/dev/") && !below(path, "/dev/shm/"))
		return sys4(SYS_openat, AT_FDCWD, path, flags, 0);
	long made = make_folder(path);
	/* Others can write to a shared folder, so follow no links. */
	long fd = sys4(SYS_openat, AT_FDCWD, path, flags | O_CREAT | O_NOFOLLOW, 0666);
	if (fd >= 0) /* independent of the umask; some file systems have no modes */
		sys2(SYS_fchmod, fd, 0666);
	return fd == -ENOENT && made < 0 ? made : fd;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators, scrambled", 2016. */
static void make_data(u64 *data, u64 *state)
{
	u64 x = *state;
	for (long i = 0; i < BLOCK / 8; i++) {
		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		data[i] = x * 0x2545f4914f6cdd1dul;
	}
	*state = x;
}

static long write_all(long fd, const u8 *data, i64 bytes)
{
	while (bytes > 0) {
		long r = sys3(SYS_write, fd, data, bytes);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? r : -EIO;
		data += r;
		bytes -= r;
	}
	return 0;
}

/* Writes the file to disk and evicts it. Ignores files that do not support fsync. */
static long settle(long fd)
{
	long r = sys1(SYS_fsync, fd);
	if (r < 0 && r != -EINVAL && r != -EROFS)
		return r;
	return sys4(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED);
}

static long fill_one(const char *path, i64 bytes, u64 *data, u64 *state)
{
	long fd = open_to_fill(path), r = 0;
	if (fd < 0)
		return fd;
	for (i64 left = bytes; r == 0 && left > 0; left -= BLOCK) {
		make_data(data, state);
		r = write_all(fd, (u8 *)data, left < BLOCK ? left : BLOCK);
	}
	if (r == 0)
		r = settle(fd);
	if (r < 0) /* frees the space of a file; fails for a device */
		sys2(SYS_ftruncate, fd, 0);
	long closed = sys1(SYS_close, fd);
	return r < 0 ? r : closed;
}

__attribute__((noreturn)) static void fill(char **args)
{
	i64 bytes = number(args[0], 0);
	if (bytes <= 0)
		refuse("tare-probe: fill BYTES FILE...: BYTES is a whole number above 0\n");
	char **path = args + 1;
	u64 n = paths(path);
	long data = map(BLOCK);
	if (data < 0)
		refuse("tare-probe: fill: the kernel refused to map memory\n");
	u64 begun = now(), state = begun | 1; /* different data on every call */
	for (u64 i = 0; i < n; i++) {
		long r = fill_one(path[i], bytes, (u64 *)data, &state);
		if (r < 0)
			stopped("fill", r, path[i]);
	}
	u64 took = now() - begun;
	char line[96];
	char *p = put(put_number(put(line, "tare-fill/1 "), n), " ");
	p = put(put_number(p, (u64)bytes), " ");
	p = put(put_number(p, took), "\n");
	print(line, p);
	leave_with(0);
}

__attribute__((noreturn)) static void evict(char **path)
{
	u64 n = paths(path);
	for (u64 i = 0; i < n; i++) {
		long fd = sys4(SYS_openat, AT_FDCWD, path[i], O_RDONLY | O_CLOEXEC, 0);
		long r = fd < 0 ? fd : settle(fd);
		if (r < 0)
			stopped("evict", r, path[i]);
		sys1(SYS_close, fd);
	}
	char line[64];
	print(line, put(put_number(put(line, "tare-evict/1 "), n), "\n"));
	leave_with(0);
}

/* Returns the size of blocks in bytes, limited to 18 digits: some file systems report an
 * unlimited size. */
static u64 in_bytes(u64 blocks, u64 block)
{
	u64 most = 999999999999999999ul;
	return block && blocks > most / block ? most : blocks * block;
}

static char *put_file_system(char *line, const char *path)
{
	struct statfs s;
	long r = sys2(SYS_statfs, path, &s);
	if (r < 0)
		return put_error(line, "fs", r, path);
	u64 block = s.frsize ? s.frsize : s.bsize;
	char *p = put(put_hex(put(line, "tare-fs/1 "), s.type), " ");
	p = put(put_number(p, in_bytes(s.blocks, block)), " ");
	p = put(put_number(p, in_bytes(s.bavail, block)), " ");
	return put(put(p, path), "\n");
}

__attribute__((noreturn)) static void file_systems(char **path)
{
	char line[LONGEST_PATH + 96];
	u64 n = paths(path);
	for (u64 i = 0; i < n; i++)
		print(line, put_file_system(line, path[i]));
	leave_with(0);
}

/* Reads the first 4 KiB; returns 0 or -errno. End of file is not an error. */
static long read_first(const char *path, long flags, long buffer)
{
	long fd = sys4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0);
	if (fd < 0)
		return fd;
	long r;
	while ((r = sys3(SYS_read, fd, buffer, 4096)) == -EINTR)
		;
	sys1(SYS_close, fd);
	return r < 0 ? r : 0;
}

__attribute__((noreturn)) static void direct(char **path)
{
	if (paths(path) != 1)
		refuse("tare-probe: direct FILE\n");
	long buffer = map(4096); /* aligned to a page */
	if (buffer < 0)
		refuse("tare-probe: direct: the kernel refused to map memory\n");
	long r = read_first(path[0], O_DIRECT, buffer);
	/* Report an error of O_DIRECT only if the file is readable without it. */
	long without = r < 0 ? read_first(path[0], 0, buffer) : 0;
	if (without < 0)
		stopped("direct", without, path[0]);
	char line[64];
	print(line, put(put_number(put(line, "tare-direct/1 "), (u64)-r), "\n"));
	leave_with(0);
}

#endif
