/*
 * The memory shared by tare and its lanes: a header, the environment of the commands,
 * and one slot per lane. internal/lane/shared.go has the same layout for Go, and a test
 * compares the two.
 */
#ifndef TARE_SHARED_H
#define TARE_SHARED_H

#include "sys.h"

enum {
	LAYOUT = 4, /* incremented for every change below */
	HEADER_SIZE = 4096,
	ENV_SIZE = 131072,
	SLOT_SIZE = 65536,
	TOKEN_SIZE = 160,
	ARGS_SIZE = 16384,
	OUT_SIZE = 32768,
	ERR_SIZE = 8192,

	/* inherited descriptors */
	FD_SHARED = 3,
	FD_ABORT = 4,
	FD_MOUNTS = 5,
};

/* ALONE is for a batch of one lane: it needs no gate, which saves two context switches. */
enum word { IDLE = 0, ARMED = 1, ALONE = 2 };

enum op {
	OP_NONE = 0,	     /* pass the gate and do nothing */
	OP_EXEC = 1,	     /* run a command and wait for it */
	OP_SPAWN = 2,	     /* start a command and let it run: the host's start */
	OP_KILL = 3,	     /* send `signal` to the lane's own workload, `watch` */
	OP_FLOOR_CREATE = 4, /* namespaces, cgroup, root; stop before exec */
	OP_FLOOR_START = 5,  /* let it exec */
	OP_FLOOR_RUN = 6,    /* both */
	OP_FLOOR_REMOVE = 7, /* remove the cgroups */
};

enum need {
	NEED_CALL = 1,	/* the command has exited, or the kernel's work is done */
	NEED_READY = 2, /* the probe's line with `token` has arrived */
	NEED_EXIT = 4,	/* process `watch` is gone */
};

enum stage {
	STAGE_NONE = 0,
	STAGE_SPAWN = 1,  /* clone */
	STAGE_EXEC = 2,	  /* execve */
	STAGE_WATCH = 3,  /* pidfd_open of the process to watch */
	STAGE_CGROUP = 4, /* making or joining a cgroup */
	STAGE_ROOT = 5,	  /* mounts and pivot_root */
	STAGE_KILL = 6,	  /* kill */
	STAGE_REMOVE = 7, /* rmdir of a cgroup */
	STAGE_TIMEOUT = 8,
	STAGE_ABORT = 9,
	STAGE_GONE = 10, /* the workload ended before its signal */
};

struct header {
	u32 layout;
	u32 gate;	 /* a futex: armed lanes wait here for a change */
	u32 parked;	 /* a futex: number of lanes at the gate */
	u32 want_parked; /* tare is woken at this value of parked */
	u32 done;	 /* a futex: number of finished lanes */
	u32 want_done;
	u32 priority; /* priority of the lanes: 0 ordinary, 1 nice -20, 2 SCHED_FIFO */
	u32 home;     /* 1 + the CPU of lane 0, 0 for any */
};

struct slot {
	u32 word; /* a futex: enum word */
	u32 op;
	u32 need;
	i32 watch;
	u64 timeout; /* ns from the lane's own start */
	u32 argc;    /* strings in args */
	u32 signal;

	/* results, CLOCK_MONOTONIC ns */
	u64 start;
	u64 spawned;
	u64 returned;
	u64 seen;
	u64 exited;
	u64 user; /* ns */
	u64 sys;
	u64 maxrss; /* bytes */
	u64 own;    /* CPU time (ns) of the lane itself for this order, since the release */
	i32 status; /* wait status of the command */
	i32 err;    /* errno of the failure at stage */
	u32 stage;
	i32 pid;	     /* pid of the workload: host and floor */
	i32 workload_status; /* wait status of `watch`, when known */
	u32 workload_known;
	u32 missing; /* needs not met */
	u32 out_len;
	u32 err_len;
	u32 dropped; /* bytes of output that did not fit */

	char token[TOKEN_SIZE];
	char args[ARGS_SIZE]; /* NUL-terminated strings, one after the other */
	char out[OUT_SIZE];
	char errout[ERR_SIZE];
};

_Static_assert(sizeof(struct header) <= HEADER_SIZE, "header");
_Static_assert(sizeof(struct slot) <= SLOT_SIZE, "slot");
/* internal/lane/shared.go uses these offsets. */
_Static_assert(__builtin_offsetof(struct slot, start) == 32, "start");
_Static_assert(__builtin_offsetof(struct slot, status) == 104, "status");
_Static_assert(__builtin_offsetof(struct slot, token) == 144, "token");
_Static_assert(__builtin_offsetof(struct slot, errout) == 144 + TOKEN_SIZE + ARGS_SIZE + OUT_SIZE, "errout");

#endif
