// Package datapath is a small data path in BPF, for machines that have none: a
// lookup of services at connect, and a look at connections' events, attached to a
// cgroup of tare's own and to nothing else.
//
// It stands for what a mesh does in the kernel. The programs are made of
// instructions when they are loaded; no compiler and no file takes part. Their
// links end with the process, however it ends.
package datapath

import "net/netip"

// Options say what is attached where.
type Options struct {
	Cgroup   string         // path of a folder of cgroup v2
	Services int            // entries in the map of services, each with a backend; at least 1
	Backend  netip.AddrPort // where all services lead
	Heavy    int64          // rounds of a loop in every program
	Sockops  bool           // attach the look at connections' events, too
	Name     string         // what maps and programs are called begins with it, up to 6 bytes: "tare"
}
