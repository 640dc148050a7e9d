// These programs look up services at connect and count events of connections. A loop
// makes both as expensive as requested, see package datapath.
#include "types.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// MAX_LOOP is BPF_MAX_LOOPS of linux/bpf_verifier.h: the maximum callbacks of bpf_loop.
#define MAX_LOOP (1 << 23)

// These are the block size and the limit of the loop that the verifier walks through.
// The verifier gives up after a million instructions. It also gives up with 8192 pending
// branches.
#define WALKED_BLOCK 16
#define MAX_WALKED (4096 * WALKED_BLOCK)

// VERDICT is the result of a cgroup program that allows the operation.
#define VERDICT 1

// OPERATIONS is the number of counted sock_ops operations. Linux 6.18 has fewer.
#define OPERATIONS 32

// These are the used fields of the contexts in linux/bpf.h, at their offsets.
struct bpf_sock_addr {
	__u32 user_family;
	__u32 user_ip4; // network byte order
	__u32 user_ip6[4];
	__u32 user_port; // a u16 in network byte order
};

struct bpf_sock_ops {
	__u32 op;
};

struct address {
	__u32 ip, port;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct address);
	__type(value, struct address); // address of the backend
	__uint(max_entries, 1);        // set to the requested number of services
} tare_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} tare_rounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64); // number of calls
	__uint(max_entries, OPERATIONS);
} tare_events SEC(".maps");

// xorshift does one round: Marsaglia, Xorshift RNGs (2003), the triple 13, 7, 17. Each
// round depends on the previous one, so rounds cannot be omitted or done in parallel.
static __always_inline __u64 xorshift(__u64 state)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^ state << 17;
}

static long work(__u32 index, __u64 *state)
{
	*state = xorshift(*state);
	return 0; // go on
}

// looped does the rounds with bpf_loop (Linux 5.17), in up to two calls.
static __always_inline __u64 looped(__u64 rounds)
{
	__u64 state = rounds;
	__u64 first = rounds > MAX_LOOP ? MAX_LOOP : rounds;
	bpf_loop(first, work, &state, 0);
	if (rounds > first)
		bpf_loop(rounds - first, work, &state, 0);
	return state;
}

// walked does the rounds with a bounded loop (Linux 5.3), in whole blocks.
static __always_inline __u64 walked(__u64 rounds)
{
	volatile __u64 state = rounds; // on the stack, so that all of it is done
	for (__u64 i = 0; i < rounds && i < MAX_WALKED; i += WALKED_BLOCK) {
		__u64 block = state;
#pragma unroll
		for (int j = 0; j < WALKED_BLOCK; j++)
			block = xorshift(block);
		state = block;
	}
	return state;
}

// heavy does the number of rounds in the map. This number is also the initial state. It
// must not be 0, because xorshift of 0 is 0. It must not be a constant either, because
// the verifier could compute the result.
static __always_inline __u64 heavy(__u64 loop(__u64))
{
	__u32 zero = 0;
	__u64 *rounds = bpf_map_lookup_elem(&tare_rounds, &zero);
	return rounds && *rounds ? loop(*rounds) : 0;
}

// connect replaces the address of a service by that of its backend. It does not change
// other addresses.
static __always_inline int connect(struct bpf_sock_addr *to)
{
	struct address service = {to->user_ip4, to->user_port};
	struct address *backend = bpf_map_lookup_elem(&tare_services, &service);
	if (backend) {
		to->user_ip4 = backend->ip;
		to->user_port = backend->port;
	}
	return VERDICT;
}

// count counts the calls per operation. The addition is atomic, because events may
// interrupt each other on the same CPU.
static __always_inline int count(struct bpf_sock_ops *event)
{
	__u32 op = event->op;
	__u64 *times = bpf_map_lookup_elem(&tare_events, &op);
	if (times)
		__sync_fetch_and_add(times, 1);
	return VERDICT;
}

SEC("cgroup/connect4")
int tare_connect4(struct bpf_sock_addr *ctx)
{
	heavy(looped);
	return connect(ctx);
}

SEC("cgroup/connect4")
int tare_connect4_walked(struct bpf_sock_addr *ctx)
{
	heavy(walked);
	return connect(ctx);
}

SEC("sockops")
int tare_sockops(struct bpf_sock_ops *ctx)
{
	heavy(looped);
	return count(ctx);
}

SEC("sockops")
int tare_sockops_walked(struct bpf_sock_ops *ctx)
{
	heavy(walked);
	return count(ctx);
}

// The kernel cannot test-run the program types above. A twin does the same up to the
// end of the loop, and returns the lower half of the result.
SEC("socket")
int tare_twin(void *ctx)
{
	return heavy(looped);
}

SEC("socket")
int tare_twin_walked(void *ctx)
{
	return heavy(walked);
}
