package bpfstat

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Meter reads programs and maps. It keeps a descriptor of every program in the last
// listing, so that the last counters of a program unloaded since then are still
// readable. The next listing closes the descriptor and drops the program if it no
// longer exists. Meter does not keep maps open. It is safe for concurrent use.
type Meter struct {
	mu         sync.Mutex
	scratch    *scratch
	reader     procs.Reader
	programs   []*program // ordered by id
	maps       []*aMap
	users      map[uint32]int // number of programs by map id
	listings   int
	highest    uint32             // highest program id so far
	statistics map[io.Closer]bool // open descriptors that keep statistics on
}

// program is a loaded program.
type program struct {
	record.Program
	fd       int
	maps     []uint32
	named    bool // fullName was called
	counters Counters
}

// aMap is a map. Its properties are immutable.
type aMap struct {
	record.ProgramMap
	kind      ebpf.MapType
	key, size uint32   // key and value size in bytes
	inner     []uint32 // ids of inner maps
	partly    bool     // inner may be incomplete
}

// Open checks that programs can be listed. The error matches [errUnsupported] if the
// kernel or the capabilities of this process are the reason.
func Open() (*Meter, error) {
	m := &Meter{scratch: &scratch{}, users: map[uint32]int{}, statistics: map[io.Closer]bool{}}
	if _, err := m.scratch.nextID(unix.BPF_PROG_GET_NEXT_ID, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, unsupported("list the BPF programs of this machine", "4.13", err)
	}
	return m, nil
}

// Close closes all descriptors, including those of statistics.
func (m *Meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, p := range m.programs {
		errs = append(errs, unix.Close(p.fd))
	}
	for on := range m.statistics {
		errs = append(errs, on.Close())
	}
	m.programs, m.maps = nil, nil
	clear(m.statistics)
	return errors.Join(errs...)
}

// List returns the programs that match f with their counters and maps. It includes the
// results of earlier calls of [Meter.Describe]. Memory is -1 before Describe.
func (m *Meter) List(f Filter) (*Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &Listing{At: machine.Now(), filter: f}
	if err := m.listPrograms(l); err != nil {
		return nil, err
	}
	if err := m.listMaps(l); err != nil {
		return nil, err
	}
	m.listings++
	var err error
	if l.chosen, err = m.choose(f, l); err != nil {
		return nil, err
	}
	m.fill(l)
	return l, nil
}

// everyWalk is the number of listings per full walk over all ids. Other listings look
// only above the highest id, because the kernel assigns ids in ascending order
// (idr_alloc_cyclic) up to 2^31.
const everyWalk = 64

// listPrograms finds new and removed programs.
func (m *Meter) listPrograms(l *Listing) error {
	old := m.programs
	m.programs = make([]*program, 0, len(old)+8)
	after := uint32(0)
	for i, p := range old {
		here, err := m.again(p)
		if err != nil {
			m.programs = append(m.programs, old[i+1:]...)
			return err
		}
		if here {
			m.programs = append(m.programs, p)
		} else {
			l.Went = append(l.Went, p.counters)
		}
		after = p.ID
	}
	known := m.programs
	if m.listings%everyWalk == 0 {
		after = 0
	}
	before, first, came := m.highest, uint32(0), 0
	err := m.walk(unix.BPF_PROG_GET_NEXT_ID, after, "list the BPF programs of this machine", func(id uint32) error {
		if id > before {
			m.highest = max(m.highest, id)
			if came++; came == 1 {
				first = id
			}
		}
		if _, ok := slices.BinarySearchFunc(known, id, byID); ok {
			return nil
		}
		return m.program(id, l)
	})
	if before > 0 && came > 0 { // ids below the first new one may have been used before the last listing
		l.Passed = int(m.highest-first) + 1 - came
	}
	slices.SortFunc(m.programs, func(a, b *program) int { return cmp.Compare(a.ID, b.ID) })
	return err
}

func byID(p *program, id uint32) int { return cmp.Compare(p.ID, id) }

// again reads a program's counters. It closes and reopens the program by id, to check
// that the program still exists. The kernel does not reuse the id while the descriptor
// is open.
func (m *Meter) again(p *program) (here bool, err error) {
	m.scratch.program = programInfo{}
	err = info(m.scratch, p.fd, &m.scratch.program)
	closeFast(p.fd)
	if err != nil {
		return false, fmt.Errorf("read the counters of BPF program %d: %w", p.ID, err)
	}
	p.count(&m.scratch.program)
	p.fd, err = m.scratch.open(unix.BPF_PROG_GET_FD_BY_ID, p.ID)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, opening("program", p.ID, err)
	}
	return true, nil
}

// walk calls found with every id above after.
func (m *Meter) walk(command int, after uint32, what string, found func(id uint32) error) error {
	for {
		id, err := m.scratch.nextID(command, after)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return unsupported(what, "4.13", err)
		}
		if err := found(id); err != nil {
			return err
		}
		after = id
	}
}

// program adds a new program by id.
func (m *Meter) program(id uint32, l *Listing) error {
	fd, err := m.scratch.open(unix.BPF_PROG_GET_FD_BY_ID, id)
	if errors.Is(err, unix.ENOENT) {
		l.Gone++
		return nil
	}
	if err != nil {
		return opening("program", id, err)
	}
	p, err := m.meet(id, fd)
	if err != nil {
		unix.Close(fd)
		return err
	}
	m.programs = append(m.programs, p)
	return nil
}

// closeFast closes the descriptor of a program or map. That does not block, so it skips
// Go's scheduler.
func closeFast(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// opening wraps an error of opening a descriptor.
func opening(what string, id uint32, err error) error {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return fmt.Errorf("open BPF %s %d: %w: a descriptor is kept of every program; raise the limit (ulimit -n)", what, id, err)
	}
	return unsupported(fmt.Sprintf("open BPF %s %d", what, id), "4.13", err)
}

// meet reads the properties of a new program.
func (m *Meter) meet(id uint32, fd int) (*program, error) {
	i := &m.scratch.program
	*i = programInfo{MapCount: uint32(len(m.scratch.maps)), Maps: unsafe.Pointer(&m.scratch.maps)}
	if err := info(m.scratch, fd, i); err != nil {
		return nil, fmt.Errorf("ask what BPF program %d is: %w", id, err)
	}
	p := &program{fd: fd}
	p.count(i)
	p.Program = record.Program{
		Type: record.TypeProgram, ID: i.ID, Kind: kindOf(programKinds, i.Type), Name: unix.ByteSliceToString(i.Name[:]),
		Tag: hex.EncodeToString(i.Tag[:]), Memory: -1, Attached: []string{},
		Instructions: int64(i.XlatedLen) / instructionSize, Jited: int64(i.JitedLen),
	}
	if int(i.MapCount) <= len(m.scratch.maps) {
		p.maps = slices.Clone(m.scratch.maps[:i.MapCount])
	} else { // instructions may refer to 64 maps; BPF_PROG_BIND_MAP adds more
		p.maps = make([]uint32, min(i.MapCount, maxMaps))
		again := &programInfo{MapCount: uint32(len(p.maps)), Maps: unsafe.Pointer(unsafe.SliceData(p.maps))}
		if err := info(m.scratch, fd, again); err != nil {
			return nil, fmt.Errorf("ask which maps BPF program %d uses: %w", p.ID, err)
		}
		p.maps = p.maps[:min(int(again.MapCount), len(p.maps))]
	}
	slices.Sort(p.maps)
	p.maps = slices.Compact(p.maps)
	return p, nil
}

// instructionSize is the size of struct bpf_insn.
const instructionSize = 8

// maxMaps exceeds the number of maps of any program.
const maxMaps = 4096

func (p *program) count(i *programInfo) {
	p.counters = Counters{ID: i.ID, Count: i.RunCount, Time: i.RunTime, Misses: i.Misses}
}

// Counters reads the counters of programs with these ids and appends them to into[:0].
// It skips programs that were not in the last listing. It makes one system call per
// program.
func (m *Meter) Counters(ids []uint32, into []Counters) ([]Counters, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	into = into[:0]
	s := m.scratch
	for _, id := range ids {
		at, ok := slices.BinarySearchFunc(m.programs, id, byID)
		if !ok {
			continue
		}
		p := m.programs[at]
		s.program = programInfo{}
		if err := info(s, p.fd, &s.program); err != nil {
			return into, fmt.Errorf("read the counters of BPF program %d: %w", id, err)
		}
		p.count(&s.program)
		into = append(into, p.counters)
	}
	return into, nil
}

// Statistics enables the kernel's statistics (Linux 5.8) until release is called, the
// meter is closed, or this process ends. already reports whether they were on before,
// through the sysctl kernel.bpf_stats_enabled or another process's descriptor.
func (m *Meter) Statistics() (release func() error, already bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _ := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled") // since Linux 5.1
	sysctl := strings.TrimSpace(string(value)) == "1"
	already = sysctl || counted()
	on, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil && sysctl {
		return func() error { return nil }, true, nil // Linux 5.1 to 5.7
	}
	if err != nil {
		return nil, already, unsupported("switch the statistics of BPF programs on", "5.8", err)
	}
	m.statistics[on] = true
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.statistics[on] {
			return nil
		}
		delete(m.statistics, on)
		return on.Close()
	}, already, nil
}

// counted reports whether the kernel counts runs. It runs a trivial program once and
// reads its run count. It returns false if no program can be loaded, as before Linux
// 5.11 above the limit of locked memory.
func counted() bool {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "tare_counted", Type: ebpf.SocketFilter, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		return false
	}
	defer p.Close()
	if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64)}); err != nil { // the kernel requires a packet header
		return false
	}
	stats, err := p.Stats()
	return err == nil && stats.RunCount > 0
}
