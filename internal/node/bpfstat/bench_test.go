package bpfstat

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

// The programs of the two benchmarks, with two maps each.
const loaded = 200

func BenchmarkFirstListing(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		m, err := Open()
		must.OK(b, err)
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
			must.OK(b, m.Describe(l))
		}
	})
}

// BenchmarkBareLoop is what the others stand beside.
func BenchmarkBareLoop(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		must.OK(b, bareProgramLoop())
	}
}

// bareProgramLoop walks all programs: the next id, a descriptor, its info, and closes it.
func bareProgramLoop() error {
	s := &scratch{}
	return (&Meter{scratch: s}).walk(unix.BPF_PROG_GET_NEXT_ID, 0, "walk", func(id uint32) error {
		fd, err := s.open(unix.BPF_PROG_GET_FD_BY_ID, id)
		if err != nil {
			return nil // it went
		}
		defer closeFast(fd)
		s.program = programInfo{}
		return info(s, fd, &s.program)
	})
}
