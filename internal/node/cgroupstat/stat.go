package cgroupstat

import "bytes"

// stats are what is taken from memory.stat, in bytes.
type stats struct {
	anon, file, shmem, inactive     int64 // always there
	mapped, swap                    int64
	kernel, vmalloc                 int64
	slab, stacks, tables, sectables int64
	percpu, sock                    int64
	seen                            keys
}

// keys is a set of lines.
type keys uint

const (
	keyAnon keys = 1 << iota
	keyFile
	keyShmem
	keyInactive
	keyKernel

	needed = keyAnon | keyFile | keyShmem | keyInactive
	every  = ^keys(0)
)

// parse1 reads the memory.stat of version 1: after the group's own lines those
// of it and all below it, which begin with "total_". It stops when it has the
// wanted ones.
//
// total_rss is anonymous memory, huge pages among them, and swap cache that is
// mapped; total_cache is all of the page cache with shmem and tmpfs in it;
// total_mapped_file has mapped shmem in it.
func (s *stats) parse1(b []byte, wanted keys) error {
	*s = stats{}
	if i := bytes.Index(b, []byte("\ntotal_")); i >= 0 {
		b = b[i+1:]
	}
	for rest := b; len(rest) > 0 && s.seen&wanted != wanted; {
		var key, value []byte
		key, value, rest = line(rest)
		var to *int64
		var mark keys
		switch string(key) {
		case "total_rss":
			to, mark = &s.anon, keyAnon
		case "total_cache":
			to, mark = &s.file, keyFile
		case "total_shmem":
			to, mark = &s.shmem, keyShmem
		case "total_inactive_file":
			to, mark = &s.inactive, keyInactive
		case "total_mapped_file":
			to = &s.mapped
		case "total_swap":
			to = &s.swap
		default:
			continue
		}
		if err := s.take(to, value, mark); err != nil {
			return err
		}
	}
	return s.close(b, "total_rss, total_cache, total_shmem and total_inactive_file")
}

// parse2 reads the memory.stat of version 2, whose figures are of the group and
// all below it. "file" has shmem and tmpfs in it; "kernel" (Linux 5.18) has
// slab, stacks, page tables, percpu and vmalloc in it, but not "sock".
func (s *stats) parse2(b []byte, wanted keys) error {
	*s = stats{}
	for rest := b; len(rest) > 0 && s.seen&wanted != wanted; {
		var key, value []byte
		key, value, rest = line(rest)
		var to *int64
		var mark keys
		switch string(key) {
		case "anon":
			to, mark = &s.anon, keyAnon
		case "file":
			to, mark = &s.file, keyFile
		case "shmem":
			to, mark = &s.shmem, keyShmem
		case "inactive_file":
			to, mark = &s.inactive, keyInactive
		case "file_mapped":
			to = &s.mapped
		case "kernel":
			to, mark = &s.kernel, keyKernel
		case "kernel_stack":
			to = &s.stacks
		case "pagetables":
			to = &s.tables
		case "sec_pagetables":
			to = &s.sectables
		case "percpu":
			to = &s.percpu
		case "vmalloc":
			to = &s.vmalloc
		case "sock":
			to = &s.sock
		case "slab":
			to = &s.slab
		default:
			continue
		}
		if err := s.take(to, value, mark); err != nil {
			return err
		}
	}
	if s.seen&keyKernel == 0 {
		s.kernel = s.slab + s.stacks + s.tables + s.sectables + s.percpu + s.vmalloc
	}
	return s.close(b, "anon, file, shmem and inactive_file")
}

func (s *stats) take(to *int64, value []byte, mark keys) error {
	n, err := amount(value)
	if err != nil {
		return err
	}
	*to = n
	s.seen |= mark
	return nil
}

// close takes shmem out of file. The two are counted on their own, and where
// they are nearly all the same the difference may come out below nothing.
func (s *stats) close(b []byte, want string) error {
	if s.seen&needed != needed {
		return malformed("lines "+want, b)
	}
	s.file = max(s.file-s.shmem, 0)
	return nil
}
