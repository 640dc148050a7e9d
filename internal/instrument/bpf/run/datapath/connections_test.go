package datapath

// Operations of a sock_ops, enum in linux/bpf.h.
const (
	opActive   = 4  // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB: a connect has succeeded
	opPassive  = 5  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: a listener has a connection
	operations = 32 // that are counted: OPERATIONS of datapath.c
)

// connections are how many connects of sockets in the cgroup have succeeded, and
// how many connections its listeners have got. Both ends of one count where both
// are in it.
func (d *Datapath) connections() (active, passive int64, err error) {
	sums, err := d.sums()
	return sums[opActive], sums[opPassive], err
}

// sums adds up the CPUs' counts of each operation.
func (d *Datapath) sums() (out [operations]int64, err error) {
	for op := range uint32(operations) {
		var each []uint64
		if err := d.loaded.Maps[datapathMapTareEvents].Lookup(op, &each); err != nil {
			return out, err
		}
		for _, n := range each {
			out[op] += int64(n)
		}
	}
	return out, nil
}
