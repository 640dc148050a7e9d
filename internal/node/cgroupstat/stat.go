package cgroupstat

import "bytes"

// stats are what is taken from memory.stat, in bytes, by the lines of it.
type stats [keys]int64

// key is one of the figures. Those before needed are always there.
type key int

const (
	anon key = iota
	fileCache
	shmem
	inactive
	needed
	mapped key = iota - 1
	swap
	kernel
	vmalloc
	slab
	stacks
	tables
	sectables
	percpu
	sock
	keys
)

// statNames are a figure's line in version 1 and 2, "" where that has none.
//
// total_rss is anonymous memory, huge pages among them, and swap cache that is
// mapped; total_cache and file are all of the page cache with shmem and tmpfs in
// it; total_mapped_file has mapped shmem in it. kernel (Linux 5.18) has slab,
// stacks, page tables, percpu and vmalloc in it, but not sock.
var statNames = [keys][2]string{
	anon:      {"total_rss", "anon"},
	fileCache: {"total_cache", "file"},
	shmem:     {"total_shmem", "shmem"},
	inactive:  {"total_inactive_file", "inactive_file"},
	mapped:    {"total_mapped_file", "file_mapped"},
	swap:      {"total_swap", ""},
	kernel:    {"", "kernel"},
	vmalloc:   {"", "vmalloc"},
	slab:      {"", "slab"},
	stacks:    {"", "kernel_stack"},
	tables:    {"", "pagetables"},
	sectables: {"", "sec_pagetables"},
	percpu:    {"", "percpu"},
	sock:      {"", "sock"},
}

// parse reads the memory.stat of a version, of which the figures are of the group
// and all below it: in version 1 they follow the group's own lines. most says which
// figures are wanted, needed or all of them (keys); it stops when it has them.
func (s *stats) parse(b []byte, version int, most key) error {
	*s = stats{}
	if i := bytes.Index(b, []byte("\ntotal_")); i >= 0 && version == 1 {
		b = b[i+1:]
	}
	var seen uint
	wanted := uint(1)<<most - 1
	for rest := b; len(rest) > 0 && seen&wanted != wanted; {
		var name, value []byte
		name, value, rest = line(rest)
		for k := range most {
			if n := statNames[k][version-1]; n == "" || string(name) != n {
				continue
			}
			n, err := amount(value)
			if err != nil {
				return err
			}
			s[k] = n
			seen |= 1 << k
			break
		}
	}
	if all := uint(1)<<needed - 1; seen&all != all {
		return malformed("lines of anonymous memory, page cache, shmem and inactive files", b)
	}
	if seen&(1<<kernel) == 0 {
		s[kernel] = s[slab] + s[stacks] + s[tables] + s[sectables] + s[percpu] + s[vmalloc]
	}
	// The two are counted on their own, and where they are nearly all the same the
	// difference may come out below nothing.
	s[fileCache] = max(s[fileCache]-s[shmem], 0)
	return nil
}
