// A lookup of services at connect, a look at connections' events, and a loop that
// makes both as heavy as is asked for, see package datapath.
#include "types.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// BPF_MAX_LOOPS of linux/bpf_verifier.h: how often bpf_loop calls back at most.
#define MAX_LOOP (1 << 23)

// The loop that the verifier walks through: what is between two decisions, and up to
// where. The verifier gives up after a million instructions, or with 8192 decisions
// put off.
#define WALKED_BLOCK 16
#define MAX_WALKED (4096 * WALKED_BLOCK)

// Of a cgroup's program: go on.
#define VERDICT 1

// Operations of a sock_ops that are counted; Linux 6.18 has less.
#define OPERATIONS 32

// The parts of linux/bpf.h's contexts that are used, at their places.
struct bpf_sock_addr {
	__u32 user_family;
	__u32 user_ip4; // network's order
	__u32 user_ip6[4];
	__u32 user_port; // holds a u16 of the network's order
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
	__type(value, struct address); // the backend's
	__uint(max_entries, 1);        // as many as are asked for
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
	__type(value, __u64); // times
	__uint(max_entries, OPERATIONS);
} tare_events SEC(".maps");

// xorshift is one round: Marsaglia, Xorshift RNGs (2003), the triple 13, 7, 17. Every
// round needs the one before, so nothing can be left out or done at once.
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

// looped has the kernel call a function (Linux 5.17). Each asks for one call at most.
static __always_inline __u64 looped(__u64 rounds)
{
	__u64 state = rounds;
	__u64 first = rounds > MAX_LOOP ? MAX_LOOP : rounds;
	bpf_loop(first, work, &state, 0);
	if (rounds > first)
		bpf_loop(rounds - first, work, &state, 0);
	return state;
}

// walked is a loop within the program (Linux 5.3). It does whole blocks.
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

// heavy does the rounds that the map asks for now. They are the state it begins with,
// too: not 0, of which the work would be 0 again; and not a constant, so that the
// verifier cannot work it out.
static __always_inline __u64 heavy(__u64 loop(__u64))
{
	__u32 zero = 0;
	__u64 *rounds = bpf_map_lookup_elem(&tare_rounds, &zero);
	return rounds && *rounds ? loop(*rounds) : 0;
}

// connect puts the backend in the place of a service's address. What is no service's
// is left as it is.
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

// count adds up what it is called for. Additions are atomic: a connection's event may
// interrupt another one's on the same CPU.
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

// The kernel can test-run neither of the kinds above. A twin does what they do up to
// the end of the loop, and says the lower half of what that worked out.
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
