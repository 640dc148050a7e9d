package bpfstat

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The programs of the two benchmarks, with two maps each.
const loaded = 200

func BenchmarkFirstListing(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		m, err := Open()
		if err != nil {
			b.Fatal(err)
		}
		if l := list(b, m, Filter{}); len(l.Programs) < loaded || len(l.Maps) < 2*loaded {
			b.Fatalf("%d programs and %d maps", len(l.Programs), len(l.Maps))
		}
		b.StopTimer()
		m.Close()
		b.StartTimer()
	}
}

func BenchmarkRefresh(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	m := openMeter(b)
	l := list(b, m, Filter{})
	var ids []uint32
	for i := range l.Programs {
		ids = append(ids, l.Programs[i].ID)
	}
	b.Run("listing", func(b *testing.B) {
		for b.Loop() {
			list(b, m, Filter{})
		}
	})
	b.Run("counters", func(b *testing.B) {
		var into []Counters
		for b.Loop() {
			var err error
			if into, err = m.Counters(ids, into); err != nil || len(into) != len(ids) {
				b.Fatal(len(into), err)
			}
		}
	})
	b.Run("description", func(b *testing.B) {
		for b.Loop() {
			if err := m.Describe(l); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBareLoop is what the others stand beside.
func BenchmarkBareLoop(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		if err := bareProgramLoop(); err != nil {
			b.Fatal(err)
		}
	}
}

// bareProgramLoop walks all programs: the next id, a descriptor, its info, and closes it.
func bareProgramLoop() error {
	type ids struct{ id, next, flags uint32 }
	type ask struct {
		fd, size uint32
		info     unsafe.Pointer
	}
	at, into := &ids{}, make([]byte, 232) // struct bpf_prog_info
	for {
		if _, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_GET_NEXT_ID, uintptr(unsafe.Pointer(at)), unsafe.Sizeof(*at)); errno != 0 {
			if errno == unix.ENOENT {
				return nil
			}
			return errno
		}
		*at = ids{id: at.next}
		fd, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_GET_FD_BY_ID, uintptr(unsafe.Pointer(at)), unsafe.Sizeof(*at))
		if errno != 0 {
			continue // it went
		}
		clear(into)
		a := &ask{fd: uint32(fd), size: uint32(len(into)), info: unsafe.Pointer(unsafe.SliceData(into))}
		_, _, errno = unix.RawSyscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a))
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		if errno != 0 {
			return errno
		}
	}
}
