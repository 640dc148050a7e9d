/*
 * A tiny static HTTP server, for tests in place of a user's server.
 *
 *	serve PORT [delay=MS] [leak=BYTES] [hang=REQUESTS] [work=US]
 *
 * Listens on all IPv4 addresses after the delay. It answers every request with
 * 200 and a small text, on persistent connections. Every request leaks BYTES
 * and uses US microseconds of CPU time. After REQUESTS requests it stops
 * answering.
 * SIGTERM ends it with 0, also as the first process of a container. Exit 2 with a line
 * on standard error if it cannot listen.
 */
#ifndef TARE_SERVE_H
#define TARE_SERVE_H

#include "load.h"

enum {
	AF_INET = 2, SOCK_STREAM = 1, SOCK_NONBLOCK = 04000, SOCK_CLOEXEC = 02000000,
	SOL_SOCKET = 1, SO_REUSEADDR = 2, IPPROTO_TCP = 6, TCP_NODELAY = 1,
	EPOLLIN = 1, EPOLL_CTL_ADD = 1, MAP_NORESERVE = 0x4000,
	MOST_CONNECTIONS = 4096, MOST_EVENTS = 64,
	ROOM = 64 << 20, /* size (bytes) of a mapping for leaks */
};

struct epoll_event {
	u32 events;
	u64 fd;
}
#if defined(__x86_64__)
__attribute__((packed))
#endif
;

struct server {
	i64 delay, leak, hang, work;
	u64 at, end;	/* free part of the mapping for leaks */
	u8 *ends;	/* by connection: bytes read of the blank line at the end of a request */
	struct meter used;
};

static const char answer[] = "HTTP/1.1 200 OK\r\nServer: tare-probe\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\ntare\n";

static void leak(struct server *s)
{
	u64 left = (u64)s->leak;
	while (left) {
		if (s->at == s->end) {
			long at = sys6(SYS_mmap, 0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (at < 0)
				refuse("tare-probe: serve: the kernel refused to map more memory\n");
			sys3(SYS_madvise, at, ROOM, MADV_NOHUGEPAGE);
			s->at = (u64)at;
			s->end = s->at + ROOM;
		}
		u64 n = left < s->end - s->at ? left : s->end - s->at;
		for (u64 i = 0; i < n; i += 4096)
			*(volatile u8 *)(s->at + i) = 1;
		*(volatile u8 *)(s->at + n - 1) = 1;
		s->at += n;
		left -= n;
	}
}

/* Answers the requests that end in the data read; returns 0 if the connection is closed. */
static int answer_all(struct server *s, long fd)
{
	static char in[16384];
	long n = sys3(SYS_read, fd, in, sizeof in);
	if (n == -EAGAIN || n == -EINTR)
		return 1;
	for (long i = 0; i < n; i++) {
		u8 got = s->ends[fd];
		s->ends[fd] = in[i] == "\r\n\r\n"[got] ? got + 1 : in[i] == '\r';
		if (s->ends[fd] < 4)
			continue;
		s->ends[fd] = 0;
		leak(s);
		spend(&s->used, (u64)s->work * 1000);
		if (sys3(SYS_write, fd, answer, sizeof answer - 1) != sizeof answer - 1)
			return 0;
		if (s->hang && --s->hang == 0)
			for (;;)
				sys5(SYS_ppoll, 0, 0, 0, 0, 8);
	}
	return n > 0;
}

static void watch(long epoll, long fd)
{
	struct epoll_event e = {EPOLLIN, (u64)fd};
	sys4(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &e);
}

static void welcome(struct server *s, long epoll, long listener)
{
	int one = 1;
	for (;;) {
		long fd = sys4(SYS_accept4, listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		if (fd >= MOST_CONNECTIONS) {
			sys1(SYS_close, fd);
			continue;
		}
		s->ends[fd] = 0;
		sys5(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		watch(epoll, fd);
	}
}

/* Parses "name=NUMBER" into a setting. */
static void set(struct server *s, const char *word)
{
	struct { const char *name; i64 *value; } known[] = {
		{"delay=", &s->delay}, {"leak=", &s->leak}, {"hang=", &s->hang}, {"work=", &s->work},
	};
	for (int i = 0; i < 4; i++) {
		u64 n = 0;
		while (known[i].name[n] && word[n] == known[i].name[n])
			n++;
		if (!known[i].name[n] && (*known[i].value = number(word + n, 0)) >= 0)
			return;
	}
	refuse("tare-probe: serve PORT [delay=MS] [leak=BYTES] [hang=REQUESTS] [work=US]\n");
}

__attribute__((noreturn)) static void serve(long count, char **words)
{
	static u8 ends[MOST_CONNECTIONS];
	static struct epoll_event events[MOST_EVENTS];
	struct server s = {0, 0, 0, 0, 0, 0, ends, {0, 0, 0, 0, 0}};
	i64 port = number(words[0], 0);
	if (port < 1 || port > 65535)
		refuse("tare-probe: serve PORT: a number from 1 to 65535\n");
	for (long i = 1; i < count; i++)
		set(&s, words[i]);
	if (s.work)
		calibrate(&s.used);
	if (s.delay)
		sleep_until(now() + (u64)s.delay * 1000000u);
	struct { unsigned short family; u8 port[2]; u32 address; u64 rest; } here = {AF_INET, {(u8)(port >> 8), (u8)port}, 0, 0};
	int one = 1;
	long listener = sys3(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sys5(SYS_setsockopt, listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (sys3(SYS_bind, listener, &here, sizeof here) < 0 || sys2(SYS_listen, listener, 1024) < 0)
		refuse("tare-probe: serve: it cannot listen on that port\n");
	long epoll = sys1(SYS_epoll_create1, 0);
	watch(epoll, listener);
	for (;;) {
		long n = sys6(SYS_epoll_pwait, epoll, (long)events, MOST_EVENTS, -1, 0, 8);
		for (long i = 0; i < n; i++) {
			long fd = (long)events[i].fd;
			if (fd == listener)
				welcome(&s, epoll, listener);
			else if (!answer_all(&s, fd))
				sys1(SYS_close, fd);
		}
	}
}

#endif
