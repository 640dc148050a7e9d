package bpfstat

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// row returns a program of a listing and its counters.
func row(t testing.TB, l *Listing, id uint32) (*record.Program, Counters) {
	t.Helper()
	for i := range l.Programs {
		if l.Programs[i].ID == id {
			must.That(t, l.Counters[i].ID == id, "the counters at the index of program %d have ID %d", l.Counters[i].ID, id)
			return &l.Programs[i], l.Counters[i]
		}
	}
	t.Fatalf("program %d is not among the %d listed ones", id, len(l.Programs))
	return nil, Counters{}
}

func describe(t testing.TB, m *Meter, l *Listing) {
	t.Helper()
	must.OK(t, m.Describe(l))
	for _, p := range l.Problems {
		t.Errorf("problem: %s", p)
	}
}

// cgroup creates a cgroup v2 for the test.
func cgroup(t testing.TB) string {
	t.Helper()
	dir := ""
	for _, place := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var at unix.Statfs_t
		if unix.Statfs(place, &at) == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
			dir = place
			break
		}
	}
	must.That(t, dir != "", "no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup/unified")
	dir = filepath.Join(dir, fmt.Sprintf("tare-test-bpf-%d", os.Getpid()))
	must.OK(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { must.OK(t, unix.Rmdir(dir)) })
	return dir
}

func closing(t testing.TB, l link.Link, err error) {
	t.Helper()
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
}

// tracepoint opens a perf event of a tracepoint. It reads the ID of the tracepoint from a
// private mount of tracefs.
func tracepoint(t testing.TB, name string) int {
	t.Helper()
	attr := &unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT}
	attr.Size = uint32(unsafe.Sizeof(*attr))
	place := t.TempDir()
	privately(t, func() {
		if err := unix.Mount("tracefs", place, "tracefs", 0, ""); err != nil {
			t.Errorf("mount a tracefs: %v", err)
			return
		}
		number, err := os.ReadFile(place + "/events/" + name + "/id")
		if err == nil {
			attr.Config, err = strconv.ParseUint(strings.TrimSpace(string(number)), 10, 64)
		}
		check.Error(t, err, "")
	})
	fd, err := unix.PerfEventOpen(attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	must.That(t, err == nil, "open a perf event of %s: %v", name, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// privately calls a function on a thread with a private mount namespace.
func privately(t testing.TB, do func()) {
	t.Helper()
	if err := thread.Apart(func() error {
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
			return err
		}
		do()
		return nil
	}); err != nil {
		t.Errorf("create a mount namespace: %v", err)
	}
}

func TestSockhashProgramIsAttachedToItsMap(t *testing.T) {
	needRoot(t)
	a := newMap(t, &ebpf.MapSpec{Name: "tare_t_sockhash", Type: ebpf.SockHash, KeySize: 4, ValueSize: 4, MaxEntries: 4})
	p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_sk_msg", Type: ebpf.SkMsg, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	must.OK(t, link.RawAttachProgram(link.RawAttachProgramOptions{Target: a.FD(), Program: p, Attach: ebpf.AttachSkMsgVerdict}))
	m := openMeter(t)
	for owner, want := range map[string]bool{"tare": true, comm(t): true, "kmesh": false} {
		found := list(t, m, Filter{Owners: []string{owner}, IDs: []uint32{idOf(t, p)}}).Programs
		check.That(t, len(found) == 1 == want, "--owner %s: %d programs", owner, len(found))
	}
	l := list(t, m, Filter{})
	describe(t, m, l)
	x, _ := row(t, l, idOf(t, p))
	check.Equal(t, "attached", x.Attached, []string{fmt.Sprintf("sk_msg_verdict map %d", mapID(t, a))})
}

// frame is a packet large enough for a test run of a socket filter.
var frame = make([]byte, 64)

func TestCountsEqualTheRequestedRuns(t *testing.T) {
	needRoot(t)
	p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_counts", Type: ebpf.SocketFilter, Instructions: using()})
	id := idOf(t, p)
	m := openMeter(t)
	release, _, err := m.Statistics()
	must.OK(t, err)
	_, before := row(t, list(t, m, Filter{}), id)
	for _, runs := range []uint32{1, 10, 12345} {
		must.Get(p.Run(&ebpf.RunOptions{Data: frame, Repeat: runs}))(t)
		after, err := m.Counters([]uint32{id}, nil)
		must.That(t, err == nil && len(after) == 1, "%v, %v", after, err)
		// BPF_PROG_TEST_RUN counts each repetition as a run.
		got := after[0].Count - before.Count
		check.That(t, got == uint64(runs), "counted %d runs, want %d", got, runs)
		check.That(t, after[0].Time > before.Time, "%d runs took no time", runs)
		before = after[0]
	}
	must.OK(t, release())
	check.Error(t, release(), "")
	if counted() {
		t.Skip("statistics are enabled by others: cannot check the release")
	}
	must.Get(p.Run(&ebpf.RunOptions{Data: frame, Repeat: 100}))(t)
	after, err := m.Counters([]uint32{id}, nil)
	check.That(t, err == nil && after[0].Count == before.Count, "%d runs were counted after the release (%v)", after[0].Count-before.Count, err)
}

func TestEnabledStatisticsAreReported(t *testing.T) {
	needRoot(t)
	m, other := openMeter(t), openMeter(t)
	release, _, err := other.Statistics()
	must.OK(t, err)
	_, already, err := m.Statistics()
	check.That(t, err == nil && already, "already enabled: %v, %v; want true", already, err)
	must.OK(t, release())
}

func TestAttachmentsAreDescribed(t *testing.T) {
	needRoot(t)
	dir := cgroup(t)
	linked := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_linked", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, Instructions: using()})
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInet4Connect, Program: linked})
	closing(t, l, err)
	bare := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_bare", Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, Instructions: using()})
	at := must.Get(os.Open(dir))(t)
	defer at.Close()
	attach := link.RawAttachProgramOptions{Target: int(at.Fd()), Program: bare, Attach: ebpf.AttachCGroupSockOps}
	must.OK(t, link.RawAttachProgram(attach))
	defer link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(at.Fd()), Program: bare, Attach: ebpf.AttachCGroupSockOps})
	traced := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_traced", Type: ebpf.TracePoint, Instructions: using()})
	l, err = link.AttachRawLink(link.RawLinkOptions{Target: tracepoint(t, "sched/sched_process_exec"), Program: traced, Attach: ebpf.AttachPerfEvent})
	closing(t, l, err)
	old := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_old", Type: ebpf.TracePoint, Instructions: using()})
	must.OK(t, unix.IoctlSetInt(tracepoint(t, "sched/sched_process_exit"), unix.PERF_EVENT_IOC_SET_BPF, old.FD()))
	raw := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_raw", Type: ebpf.RawTracepoint, Instructions: using()})
	l, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_fork", Program: raw})
	closing(t, l, err)
	tail := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_tail", Type: ebpf.SocketFilter, Instructions: using()})
	calls := newMap(t, &ebpf.MapSpec{Name: "tare_t_calls", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 8})
	must.OK(t, calls.Put(uint32(3), uint32(tail.FD())))
	loose := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_loose", Type: ebpf.SocketFilter, Instructions: using()})

	m := openMeter(t)
	listing := list(t, m, Filter{})
	describe(t, m, listing)
	for _, want := range []struct {
		p    *ebpf.Program
		kind string
		at   []string
	}{
		{linked, "cgroup_sock_addr", []string{"cgroup connect4 " + dir}},
		{bare, "sock_ops", []string{"cgroup sock_ops " + dir}},
		{traced, "tracepoint", []string{"tracepoint sched_process_exec"}},
		{old, "tracepoint", []string{"tracepoint sched_process_exit"}},
		{raw, "raw_tracepoint", []string{"raw_tracepoint sched_process_fork"}},
		{tail, "socket_filter", []string{"tail call through map tare_t_calls"}},
		{loose, "socket_filter", []string{}},
	} {
		got, _ := row(t, listing, idOf(t, want.p))
		check.That(t, got.Kind == want.kind && slices.Equal(got.Attached, want.at) && got.Owner == "tare",
			"%s: %s at %q of %q, want %s at %q of tare", got.Name, got.Kind, got.Attached, got.Owner, want.kind, want.at)
		me := fmt.Sprintf("%d %s", os.Getpid(), strings.TrimSpace(must.Read(t, "/proc/self/comm")))
		check.Equal(t, "holders of "+got.Name, got.Holders, []string{me})
	}
	found := list(t, m, Filter{Cgroups: []string{dir}})
	check.Equal(t, "programs of a cgroup", len(found.Programs), 2)
}

func TestInterfaceIsNamedOnlyInItsNamespace(t *testing.T) {
	needRoot(t)
	p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_xdp", Type: ebpf.XDP, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	tc := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_tcx", Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	old := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_tc", Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	m := openMeter(t)
	inside := make(chan *Listing)
	outside, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		defer close(inside)
		if err := thread.Apart(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("create a network namespace: %w", err)
			}
			x, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: 1, Flags: link.XDPGenericMode})
			if err != nil {
				return fmt.Errorf("attach to lo: %w", err)
			}
			defer x.Close()
			in, err := link.AttachTCX(link.TCXOptions{Program: tc, Interface: 1, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return fmt.Errorf("attach to lo: %w", err)
			}
			defer in.Close()
			if err := filterLo(old); err != nil {
				return fmt.Errorf("make it a filter of lo: %w", err)
			}
			there := exec.CommandContext(t.Context(), "sleep", "60") // its namespace has the interface
			if err := there.Start(); err != nil {
				return err
			}
			defer there.Wait()
			defer there.Process.Kill()
			l, err := m.List(Filter{})
			if err == nil {
				err = m.Describe(l)
			}
			if err != nil {
				return err
			}
			inside <- l
			<-outside
			return nil
		}); err != nil {
			t.Error(err)
		}
	}()
	l, ok := <-inside
	if !ok {
		t.FailNow()
	}
	within, _ := row(t, l, idOf(t, p))
	withinTC, _ := row(t, l, idOf(t, tc))
	if filter, _ := row(t, l, idOf(t, old)); !slices.Equal(filter.Attached, []string{"tc egress lo"}) {
		t.Errorf("inside the namespace: filter attached to %q, want tc egress lo", filter.Attached)
	}
	l = list(t, m, Filter{})
	describe(t, m, l)
	without, _ := row(t, l, idOf(t, p))
	filter, _ := row(t, l, idOf(t, old))
	close(outside)
	<-done
	check.That(t, slices.Equal(within.Attached, []string{"xdp lo"}) && slices.Equal(withinTC.Attached, []string{"tcx ingress lo"}),
		"inside the namespace: attached to %q and %q, want xdp lo and tcx ingress lo", within.Attached, withinTC.Attached)
	const elsewhere = " lo of network namespace "
	check.That(t, len(filter.Attached) == 1 && strings.HasPrefix(filter.Attached[0], "tc egress"+elsewhere),
		"outside of the namespace: filter without a link attached to %q", filter.Attached)
	check.That(t, len(without.Attached) == 1 && strings.HasPrefix(without.Attached[0], "xdp"+elsewhere),
		"outside of the namespace: attached to %q", without.Attached)
}

// filterLo is equivalent to tc qdisc add dev lo clsact; tc filter add dev lo egress bpf
// direct-action.
func filterLo(p *ebpf.Program) error {
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: 1, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := netlink.QdiscAdd(qdisc); err != nil {
		return fmt.Errorf("clsact: %w", err)
	}
	of := netlink.FilterAttrs{LinkIndex: 1, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL}
	return netlink.FilterAdd(&netlink.BpfFilter{FilterAttrs: of, Fd: p.FD(), Name: "tare", DirectAction: true})
}

func TestMapMemoryMatchesKernelAndSharedMapsCountOnce(t *testing.T) {
	needRoot(t)
	shared := newMap(t, &ebpf.MapSpec{Name: "tare_t_shared", Type: ebpf.Hash, KeySize: 4, ValueSize: 64, MaxEntries: 1000})
	each := newMap(t, &ebpf.MapSpec{Name: "tare_t_percpu", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 512, MaxEntries: 100})
	ring := newMap(t, &ebpf.MapSpec{Name: "tare_t_ring", Type: ebpf.RingBuf, MaxEntries: 1 << 16})
	inner := &ebpf.MapSpec{Name: "tare_t_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4096, MaxEntries: 4}
	outer := newMap(t, &ebpf.MapSpec{Name: "tare_t_outer", Type: ebpf.HashOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 16, InnerMap: inner})
	insides := int64(0)
	for i := range uint32(3) {
		one := newMap(t, inner)
		must.OK(t, outer.Put(i, uint32(one.FD())))
		insides += memoryOf(t, one)
	}
	first := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_first", Type: ebpf.SocketFilter, Instructions: using(shared, each, outer)})
	second := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_second", Type: ebpf.SocketFilter, Instructions: using(shared, ring)})

	m := openMeter(t)
	l := list(t, m, Filter{Names: []string{"tare_t_first", "tare_t_second"}})
	describe(t, m, l)
	must.That(t, len(l.Programs) == 2 && len(l.Maps) == 4, "%d programs with %d maps, want 2 programs with 4 maps", len(l.Programs), len(l.Maps))
	want, sum := map[uint32]record.ProgramMap{}, insides
	for _, one := range []struct {
		a       *ebpf.Map
		kind    string
		entries int64
		users   int
	}{{shared, "hash", 1000, 2}, {each, "percpu_array", 100, 1}, {ring, "ringbuf", 1 << 16, 1}, {outer, "hash_of_maps", 16, 1}} {
		i := must.Get(one.a.Info())(t)
		id := mapID(t, one.a)
		want[id] = record.ProgramMap{ID: id, Kind: one.kind, Name: i.Name, Entries: one.entries, Memory: memoryOf(t, one.a), Shared: one.users}
		sum += memoryOf(t, one.a)
	}
	of := want[mapID(t, outer)]
	of.Inner, of.InnerMemory = 3, insides
	want[of.ID] = of
	for _, p := range []struct {
		p    *ebpf.Program
		maps int
	}{{first, 3}, {second, 2}} {
		got, _ := row(t, l, idOf(t, p.p))
		check.That(t, got.Memory == memoryOf(t, p.p) && got.Memory > 0,
			"%s: %d bytes, want %d as in fdinfo", got.Name, got.Memory, memoryOf(t, p.p))
		check.Equal(t, fmt.Sprintf("memory of %s", got.Name), len(got.Maps), p.maps)
		for _, a := range got.Maps {
			if a != want[a.ID] || a.Memory <= 0 {
				t.Errorf("map of %s: got %+v, want %+v", got.Name, a, want[a.ID])
			}
		}
		sum += memoryOf(t, p.p)
	}
	check.Equal(t, "total memory", total(l), sum)
	if got, want := memoryOf(t, each), int64(100*512*runtime.NumCPU()); got < want {
		t.Errorf("per-CPU map: %d bytes, want at least the %d bytes of its values", got, want)
	}
}

// total returns the total memory of a listing.
func total(l *Listing) (bytes int64) {
	for _, p := range l.Programs {
		bytes += p.Memory
	}
	for _, a := range l.Maps {
		bytes += a.Memory + a.InnerMemory
	}
	for _, a := range l.Loose {
		bytes += a.Map.Memory + a.Map.InnerMemory
	}
	return bytes
}

func TestInnerMapsOfSelectedProgramsCountOnce(t *testing.T) {
	needRoot(t)
	inner := &ebpf.MapSpec{Name: "tare_t_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4096, MaxEntries: 4}
	outer := &ebpf.MapSpec{Name: "tare_t_outer", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 8, InnerMap: inner}
	others, first, second := newMap(t, outer), newMap(t, outer), newMap(t, outer)
	one, other := newMap(t, inner), newMap(t, inner)
	for _, to := range []*ebpf.Map{others, first, second} {
		for i, a := range []*ebpf.Map{one, other, one} {
			must.OK(t, to.Put(uint32(i), uint32(a.FD())))
		}
	}
	newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_others", Type: ebpf.SocketFilter, Instructions: using(others, other)})
	chosen := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_chosen", Type: ebpf.SocketFilter, Instructions: using(first, second)})
	m := openMeter(t)
	l := list(t, m, Filter{IDs: []uint32{idOf(t, chosen)}})
	describe(t, m, l)
	want := memoryOf(t, chosen)
	for _, a := range []*ebpf.Map{first, second, one, other} {
		want += memoryOf(t, a)
	}
	got := total(l)
	check.That(t, got == want && l.Maps[0].Inner == 2, "%d bytes, first program has %d maps; want %d bytes and 2 maps: %+v", got, l.Maps[0].Inner, want, l.Maps)
}

// comm is the name of this process.
func comm(t testing.TB) string { return strings.TrimSpace(must.Read(t, "/proc/self/comm")) }

func TestUnusedMapsAreListedWithTheirHolders(t *testing.T) {
	needRoot(t)
	inner := &ebpf.MapSpec{Name: "tare_t_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4096, MaxEntries: 4}
	held := newMap(t, &ebpf.MapSpec{Name: "plain", Type: ebpf.HashOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 4, InnerMap: inner})
	within := newMap(t, inner)
	must.OK(t, held.Put(uint32(7), uint32(within.FD())))
	named := newMap(t, &ebpf.MapSpec{Name: "kmesh_map64", Type: ebpf.Array, KeySize: 4, ValueSize: 64, MaxEntries: 10})
	m := openMeter(t)
	place := t.TempDir()
	privately(t, func() {
		if err := unix.Mount("bpf", place, "bpf", 0, ""); err != nil {
			t.Error(err)
			return
		}
		pinned := newMap(t, &ebpf.MapSpec{Name: "plain", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err := errors.Join(os.Mkdir(place+"/bpf_kmesh", 0o755), pinned.Pin(place+"/bpf_kmesh/map")); err != nil {
			t.Error(err)
			return
		}
		id := mapID(t, pinned)
		pinned.Close()
		me := []string{fmt.Sprintf("%d %s", os.Getpid(), comm(t))}
		for _, c := range []struct {
			claim string
			f     Filter
			want  map[uint32]record.Map
		}{
			{"no filter", Filter{}, map[uint32]record.Map{mapID(t, held): {Holders: me}, mapID(t, named): {Owner: "kmesh", Holders: me}, id: {Owner: "kmesh", Pins: []string{place + "/bpf_kmesh/map"}}}},
			{"Kmesh", Filter{Kmesh: true}, map[uint32]record.Map{mapID(t, named): {Owner: "kmesh", Holders: me}, id: {Owner: "kmesh", Pins: []string{place + "/bpf_kmesh/map"}}}},
			{"maps of a process", Filter{Owners: []string{strconv.Itoa(os.Getpid())}}, map[uint32]record.Map{mapID(t, held): {Holders: me}, mapID(t, named): {Owner: "kmesh", Holders: me}}},
			{"maps of processes by name", Filter{Owners: []string{comm(t)}}, map[uint32]record.Map{mapID(t, held): {Holders: me}, mapID(t, named): {Owner: "kmesh", Holders: me}}},
			{"maps of an owner", Filter{Owners: []string{"kmesh"}}, map[uint32]record.Map{mapID(t, named): {Owner: "kmesh", Holders: me}, id: {Owner: "kmesh", Pins: []string{place + "/bpf_kmesh/map"}}}},
			{"maps pinned in a folder", Filter{Pins: []string{place}}, map[uint32]record.Map{id: {Owner: "kmesh", Pins: []string{place + "/bpf_kmesh/map"}}}},
			{"name filter only applies to programs", Filter{Names: []string{"*"}}, nil},
		} {
			l := list(t, m, c.f)
			describe(t, m, l)
			check.That(t, !slices.ContainsFunc(l.Maps, func(a record.ProgramMap) bool { return a.ID == mapID(t, held) || a.ID == mapID(t, within) }),
				"%s: unused maps are listed as maps of programs: %+v", c.claim, l.Maps)
			found := map[uint32]record.Map{}
			for _, a := range l.Loose {
				if slices.Contains([]uint32{mapID(t, held), mapID(t, named), id}, a.Map.ID) {
					found[a.Map.ID] = record.Map{Owner: a.Owner, Holders: a.Holders, Pins: a.Pins}
				}
				check.That(t, a.Map.ID != mapID(t, within) && (a.Map.ID != mapID(t, held) || a.Map.InnerMemory == memoryOf(t, within)),
					"%s: %+v: the inner map must count in its outer map", c.claim, a.Map)
			}
			check.That(t, len(found) == len(c.want) && maps.EqualFunc(found, c.want, func(a, b record.Map) bool { return reflect.DeepEqual(a, b) }),
				"%s: %+v, want %+v", c.claim, found, c.want)
		}
	})
}

func TestRemovedProgramsAreDroppedWithLastCounters(t *testing.T) {
	needRoot(t)
	p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_going", Type: ebpf.SocketFilter, Instructions: using()})
	id := idOf(t, p)
	m := openMeter(t)
	release, _, err := m.Statistics()
	must.OK(t, err)
	defer release()
	row(t, list(t, m, Filter{}), id)
	must.Get(p.Run(&ebpf.RunOptions{Data: frame, Repeat: 77}))(t)
	p.Close()
	last, err := m.Counters([]uint32{id}, nil)
	must.That(t, err == nil && len(last) == 1 && last[0].Count == 77, "counters after the unload: %+v, %v; want 77 runs", last, err)
	l := list(t, m, Filter{})
	check.That(t, !slices.ContainsFunc(l.Programs, func(p record.Program) bool { return p.ID == id }),
		"the program is still listed: the meter holds it")
	check.That(t, slices.Contains(l.Went, last[0]), "removed programs: %+v, want %+v among them", l.Went, last[0])
	check.Equal(t, "counters of a removed program", len(must.Get(m.Counters([]uint32{id}, nil))(t)), 0)
	_, err = ebpf.NewProgramFromID(ebpf.ProgramID(id))
	check.That(t, err != nil, "the program is still loaded")
}

func TestShortLivedProgramsAreCountedByID(t *testing.T) {
	needRoot(t)
	m := openMeter(t)
	passing := func(n int) {
		for range n {
			newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_passing", Type: ebpf.SocketFilter, Instructions: using()}).Close()
		}
	}
	stays := func() {
		newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_stays", Type: ebpf.SocketFilter, Instructions: using()})
	}
	stays()
	const before = 50
	passing(before)
	l := list(t, m, Filter{})
	check.That(t, l.Passed == 0, "counted %d programs before the first listing", l.Passed)
	stays()
	passing(3)
	stays()
	l = list(t, m, Filter{})
	check.That(t, l.Passed >= 3, "counted %d short-lived programs, want at least 3", l.Passed) // other processes may load programs, too
	check.That(t, l.Passed < before, "counted %d short-lived programs, including %d from before the first listing", l.Passed, before)
}

// A full walk over all IDs must return the same listing as a search above the highest known
// ID.
func TestIncrementalListingMatchesFullWalk(t *testing.T) {
	needRoot(t)
	m := openMeter(t)
	for round := range 6 {
		m.listings = everyWalk - 2*(round%3) // the first full walk is at listing 1, 3, or later
		a := newMap(t, &ebpf.MapSpec{Name: "tare_t_alone", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_new", Type: ebpf.SocketFilter, Instructions: using(a)})
		l := list(t, m, Filter{})
		got, _ := row(t, l, idOf(t, p))
		must.That(t, len(got.Maps) == 1 && got.Maps[0].ID == mapID(t, a), "round %d: maps %+v", round, got.Maps)
		gone := mapID(t, a)
		p.Close()
		a.Close()
		// The kernel releases the maps of a program some time after the program.
		for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			l = list(t, m, Filter{})
			if m.find(gone) == nil {
				break
			}
			must.That(t, !time.Now().After(until), "round %d: the removed map is still known", round)
		}
		must.That(t, slices.IsSortedFunc(l.Programs, func(a, b record.Program) int { return int(a.ID) - int(b.ID) }),
			"round %d: programs are not sorted by ID", round)
	}
}

func TestFullNameIsReadFromBTF(t *testing.T) {
	needRoot(t)
	const whole = "tare_t_with_a_long_name"
	word := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	ctx := &btf.Pointer{Target: &btf.Struct{Name: "__sk_buff"}}
	fn := &btf.Func{Name: whole, Type: &btf.FuncProto{Return: word, Params: []btf.FuncParam{{Name: "ctx", Type: ctx}}}, Linkage: btf.GlobalFunc}
	body := using()
	body[0] = btf.WithFuncMetadata(body[0].WithSymbol(whole), fn)
	named := newProgram(t, &ebpf.ProgramSpec{Name: whole, Type: ebpf.SocketFilter, Instructions: body})
	cut := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_cut_before_the_end", Type: ebpf.SocketFilter, Instructions: using()})
	m := openMeter(t)
	for _, c := range []struct {
		claim string
		globs []string
		want  []*ebpf.Program
	}{
		{"full name", []string{whole}, []*ebpf.Program{named}},
		{"truncated name", []string{"tare_t_with_a_l"}, []*ebpf.Program{named}},
		{"suffix glob", []string{"*_long_name"}, []*ebpf.Program{named}},
		{"different full name with the same prefix", []string{"tare_t_with_a_last_name"}, nil},
		{"full name of a program without BTF", []string{"tare_t_cut_before_the_end"}, []*ebpf.Program{cut}},
		{"two patterns", []string{"tare_t_cut*", whole}, []*ebpf.Program{named, cut}},
	} {
		programsAre(t, c.claim, list(t, m, Filter{Names: c.globs}), c.want)
	}
	l := list(t, m, Filter{IDs: []uint32{idOf(t, named)}})
	describe(t, m, l)
	check.That(t, l.Programs[0].Full == whole && l.Programs[0].Name == whole[:shortName],
		"name %q, full name %q", l.Programs[0].Name, l.Programs[0].Full)
}
