package bpfstat

import "strconv"

// Names of enum bpf_prog_type, bpf_map_type and bpf_attach_type of Linux 6.18, in lower
// case and without prefixes. The kernel never reuses numbers. Newer types are shown as
// numbers.
var programKinds = []string{
	"unspec", "socket_filter", "kprobe", "sched_cls", "sched_act", "tracepoint", "xdp", "perf_event", "cgroup_skb", "cgroup_sock",
	"lwt_in", "lwt_out", "lwt_xmit", "sock_ops", "sk_skb", "cgroup_device", "sk_msg", "raw_tracepoint", "cgroup_sock_addr",
	"lwt_seg6local", "lirc_mode2", "sk_reuseport", "flow_dissector", "cgroup_sysctl", "raw_tracepoint_writable", "cgroup_sockopt",
	"tracing", "struct_ops", "ext", "lsm", "sk_lookup", "syscall", "netfilter",
}

var mapKinds = []string{
	"unspec", "hash", "array", "prog_array", "perf_event_array", "percpu_hash", "percpu_array", "stack_trace", "cgroup_array",
	"lru_hash", "lru_percpu_hash", "lpm_trie", "array_of_maps", "hash_of_maps", "devmap", "sockmap", "cpumap", "xskmap", "sockhash",
	"cgroup_storage", "reuseport_sockarray", "percpu_cgroup_storage", "queue", "stack", "sk_storage", "devmap_hash", "struct_ops",
	"ringbuf", "inode_storage", "task_storage", "bloom_filter", "user_ringbuf", "cgrp_storage", "arena", "insn_array",
}

// attachKinds omits "cgroup_" and "inet": "connect4".
var attachKinds = []string{
	"ingress", "egress", "sock_create", "sock_ops", "sk_skb_stream_parser", "sk_skb_stream_verdict", "device", "sk_msg_verdict",
	"bind4", "bind6", "connect4", "connect6", "post_bind4", "post_bind6", "sendmsg4", "sendmsg6", "lirc_mode2", "flow_dissector",
	"sysctl", "recvmsg4", "recvmsg6", "getsockopt", "setsockopt", "tp_btf", "fentry", "fexit", "fmod_ret", "lsm", "iter",
	"getpeername4", "getpeername6", "getsockname4", "getsockname6", "xdp_devmap", "sock_release", "xdp_cpumap", "sk_lookup", "xdp",
	"sk_skb_verdict", "sk_reuseport_select", "sk_reuseport_migrate", "perf_event", "kprobe_multi", "lsm_cgroup", "struct_ops",
	"netfilter", "ingress", "egress", "uprobe_multi", "connect_unix", "sendmsg_unix", "recvmsg_unix", "getpeername_unix",
	"getsockname_unix", "primary", "peer", "kprobe_session", "uprobe_session", "fsession",
}

// cgroupAttach lists the attach types of cgroups.
var cgroupAttach = []uint32{
	0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 29, 30, 31, 32, 34, 43, 49, 50, 51, 52, 53,
}

// sockmapAttach lists the attach types of sockmaps and sockhashes.
var sockmapAttach = []uint32{4, 5, 7, 38}

func kindOf(names []string, n uint32) string {
	if int64(n) < int64(len(names)) {
		return names[n]
	}
	return "type " + strconv.FormatUint(uint64(n), 10)
}
