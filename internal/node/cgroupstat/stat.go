package cgroupstat

import "bytes"

// stats are values of memory.stat in bytes.
type stats [keys]int64

// key is a line of memory.stat. Every kernel has the lines before needed.
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

// statNames are the names of the lines in v1 and v2, "" if missing.
//
// total_rss is anonymous memory including huge pages and mapped swap cache. total_cache
// and file are the page cache including shmem and tmpfs. total_mapped_file includes mapped
// shmem. kernel (Linux 5.18) includes slab, stacks, page tables, percpu and vmalloc, but
// not sock.
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

// parse parses memory.stat. All figures include the group's descendants; in v1 those lines
// follow the ones without descendants. It stops once it has found every key below most,
// which is needed for the figures of a sample, or keys for all figures.
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
	// The kernel counts the two separately, so a small difference may be negative.
	s[fileCache] = max(s[fileCache]-s[shmem], 0)
	return nil
}
