package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

const kib = 1 << 10

// These are the charges of the cgroups of a recorded sandbox. The overhead group has the
// memory of the guest, QEMU, the shim and virtiofsd. The group of the pod has almost none.
const (
	overheadAnon, overheadShmem, overheadKernel = 138116 * kib, 232923 * kib, 6400 * kib
	podKernel                                   = 96 * kib
)

// The files were recorded from a Kata sandbox with cgroup v1 and sandbox_cgroup_only=false.
// The group /kata_overhead contains the VMM, virtiofsd and the shim. The time of the vCPU is
// charged to the pod. The engine reports none of it.
func TestReadingOfALiveKataSandbox(t *testing.T) {
	root := kataNode(t)
	meter := must.Get(snapshot.Of(machine.Root(root)))(t)
	defer meter.Close()
	boxes := []subject.Sandbox{{IDs: []string{"kk"}, Workload: 26377, Group: "/default/kk"}}
	before := meter.Read(t.Context(), nil, nil, true)
	before.Host.Free += overheadAnon + overheadShmem + overheadKernel + podKernel
	before.Host.Anon -= overheadAnon
	before.Host.Shmem -= overheadShmem
	before.Host.Cached -= overheadShmem
	before.Host.Slab -= overheadKernel + podKernel
	before.Host.Others = 0
	must.That(t, before.Problems.Broken == 0, "%+v", before.Problems)
	begin := meter.Read(t.Context(), boxes, nil, false)
	write(t, root, "proc/26377/task/263773/schedstat", "4900000000 0 1\n")
	stat := must.Get(os.ReadFile(filepath.Join(root, "proc/26377/stat")))(t)
	write(t, root, "proc/26377/stat", strings.Replace(string(stat), " 354 64 ", " 454 64 ", 1))
	write(t, root, "sys/fs/cgroup/cpuacct/default/kk/cpuacct.usage", "5000000000\n")
	end := meter.Read(t.Context(), boxes, nil, true)
	begin.Time, end.Time = before.Time+1, before.Time+1+2e9 // two seconds
	end.Sandboxes = 1
	end.Host.Others = 0
	end.Engine = []record.Statistic{{Lane: 0, Source: "ctr task metrics", Memory: 2 << 20, CPU: -1}}
	l := must.Get(ledger.Close(&before, &begin, &end))(t)
	p := end.Problems
	check.That(t, p.Gone+p.Reused+p.Denied+p.Broken == 0 && l.Complete, "complete %v, problems %+v", l.Complete, p)
	var memory int64
	for _, want := range []struct {
		role        record.Role
		processes   int
		anon, shmem int64
	}{
		{record.RoleShim, 1, 9184, 0},
		{record.RoleVMM, 2, 127948 + 364, 231753 + 137},
		{record.RoleVirtiofs, 2, 244 + 376, 1033},
	} {
		i := slices.IndexFunc(l.Rows, func(r ledger.Row) bool { return r.Role == want.role })
		must.That(t, i >= 0, "no row %s", want.role)
		r := l.Rows[i]
		memory += r.Memory.Anon + r.Memory.Shmem
		check.That(t, want.role != record.RoleShim || r.Memory.Cache == 38149*kib, "the shim has %d bytes of page cache", r.Memory.Cache)
		check.That(t, r.Processes == want.processes && r.Memory.Anon == want.anon*kib && r.Memory.Shmem == want.shmem*kib,
			"%s: %+v", want.role, r)
	}
	check.Equal(t, "memory of all roles", memory, 371_039*kib)
	check.That(t, l.Sum == memory+overheadKernel+podKernel && l.Residual == 0 && l.Uncharged == 0,
		"sum %d, residual %d, uncharged %d", l.Sum, l.Residual, l.Uncharged)
	for _, p := range l.Places {
		check.That(t, p.Charge == record.ChargeOverhead && p.Path == "/kata_overhead/kk", "%s: charged to %s %s", p.Role, p.Charge, p.Path)
	}
	for _, want := range []struct {
		charge record.Charge
		usage  int64
		roles  string
	}{
		{record.ChargeOverhead, overheadAnon + overheadShmem + overheadKernel, "shim vmm virtiofs"},
		{record.ChargePod, podKernel, "vcpu"},
	} {
		i := slices.IndexFunc(l.Groups, func(g ledger.GroupRow) bool { return g.Charge == want.charge })
		must.That(t, i >= 0, "no group %s", want.charge)
		g := l.Groups[i]
		roles := strings.Trim(fmt.Sprint(g.Roles), "[]")
		check.That(t, g.Usage == want.usage && roles == want.roles, "%s: %d bytes, %s", want.charge, g.Usage, roles)
	}
	vcpu := l.Rows[slices.IndexFunc(l.Rows, func(r ledger.Row) bool { return r.Role == record.RoleVCPU })]
	check.That(t, vcpu.CPUKnown && vcpu.CPU == 0.5, "vCPU %+v", vcpu)
	check.Equal(t, "remaining groups", meter.Left(&record.Reading{}, []string{"kk"}), []string{"/default/kk", "/kata_overhead/kk"})
	left := meter.Left(&record.Reading{}, []string{"k"})
	check.That(t, left == nil, "remaining groups %q", left)
	for _, of := range l.Reconciled.Parts("charge", "kind") {
		check.Equal(t, "charge and process memory", of.Of("reconciled-memory", "of", "groups").Value, of.Of("reconciled-memory", "of", "processes").Value)
	}
	reported, observed := l.Engine.Of("engine-memory", "of", "reported"), l.Engine.Of("engine-memory", "of", "observed")
	check.That(t, reported.Value == 2<<20 && observed.Value == float64(l.Sum), "engine %+v, sum %d", l.Engine, l.Sum)
}

// kataNode writes the files of the node that a snapshot of the recorded sandbox reads.
func kataNode(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must.OK(t, os.CopyFS(filepath.Join(root, "proc"), os.DirFS("../attribution/testdata/kata/proc")))
	for pid, names := range map[int]string{
		26365: strings.Repeat("containerd-shim,", 12), 26376: "ld-linux-x86-64", 26379: strings.Repeat("ld-linux-x86-64,", 5),
		26387: strings.Repeat("ld-linux-x86-64,", 4), 26377: "qemu-system-x86,call_rcu,IO mon_iothread,CPU 0/TCG",
	} {
		for i, comm := range strings.Split(strings.Trim(names, ","), ",") {
			tid, group, ns := pid, "/kata_overhead/kk", 1000
			if i > 0 {
				tid = pid*10 + i
			}
			if strings.HasPrefix(comm, "CPU ") {
				group, ns = "/default/kk", 3_900_000_000
			}
			task := filepath.Join("proc", strconv.Itoa(pid), "task", strconv.Itoa(tid))
			write(t, root, filepath.Join(task, "cgroup"), "9:name=systemd:"+group+"\n8:pids:"+group+"\n7:blkio:"+group+"\n6:freezer:"+group+"\n5:devices:"+group+"\n4:memory:"+group+"\n3:cpuset:"+group+"\n2:cpuacct:"+group+"\n1:cpu:"+group+"\n0::/\n")
			write(t, root, filepath.Join(task, "comm"), comm+"\n")
			write(t, root, filepath.Join(task, "schedstat"), fmt.Sprintf("%d 0 1\n", ns))
		}
	}
	mounts := "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	for i, c := range []string{"memory", "cpuacct", "cpu", "blkio", "pids"} {
		mounts += fmt.Sprintf("%d 10 0:%d / /sys/fs/cgroup/%s rw - cgroup cgroup rw,%s\n", 20+i, 20+i, c, c)
	}
	write(t, root, "proc/self/mountinfo", mounts)
	for group, m := range map[string][3]int64{"kata_overhead/kk": {overheadAnon, overheadShmem, overheadKernel}, "default/kk": {0, 0, podKernel}} {
		memory := filepath.Join("sys/fs/cgroup/memory", group)
		write(t, root, filepath.Join(memory, "memory.usage_in_bytes"), fmt.Sprintln(m[0]+m[1]+m[2]))
		write(t, root, filepath.Join(memory, "memory.max_usage_in_bytes"), fmt.Sprintln(m[0]+m[1]+m[2]))
		write(t, root, filepath.Join(memory, "memory.limit_in_bytes"), "9223372036854771712\n")
		write(t, root, filepath.Join(memory, "memory.kmem.usage_in_bytes"), fmt.Sprintln(m[2]))
		write(t, root, filepath.Join(memory, "memory.kmem.tcp.usage_in_bytes"), "0\n")
		write(t, root, filepath.Join(memory, "memory.stat"), fmt.Sprintf("cache 0\nrss 0\ntotal_cache %d\ntotal_rss %d\ntotal_shmem %d\ntotal_mapped_file 0\ntotal_swap 0\ntotal_inactive_file 0\n", m[1], m[0], m[1]))
		write(t, root, filepath.Join("sys/fs/cgroup/cpuacct", group, "cpuacct.usage"), "4000000000\n")
		write(t, root, filepath.Join("sys/fs/cgroup/cpu", group, "cpu.stat"), "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
		write(t, root, filepath.Join("sys/fs/cgroup/blkio", group, "blkio.throttle.io_service_bytes_recursive"), "Total 0\n")
		write(t, root, filepath.Join("sys/fs/cgroup/pids", group, "pids.current"), "5\n")
	}
	write(t, root, "proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 4000000 kB\nMemAvailable: 6000000 kB\nBuffers: 0 kB\nCached: 2000000 kB\nSwapCached: 0 kB\nShmem: 300000 kB\nAnonPages: 400000 kB\nSlab: 200000 kB\nKernelStack: 0 kB\nPageTables: 0 kB\nPercpu: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
	write(t, root, "proc/zoneinfo", "Node 0, zone   Normal\n  pages free     1\n  pagesets\n    cpu: 0\n              count:    0\n              high:     0\n              batch:    1\n")
	write(t, root, "proc/loadavg", "0.42 0.30 0.20 1/100 1234\n")
	write(t, root, "proc/stat", "cpu  1000 0 0 4000 0 0 0 0 0 0\n")
	write(t, root, "proc/diskstats", "   8       0 sda 1 0 8 0 1 0 8 0 0 0 0 0 0 0 0 0 0\n")
	write(t, root, "sys/block/sda/dev", "8:0\n")
	write(t, root, "sys/block/sda/device/model", "disk\n")
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	must.Write(t, name, text)
}

func TestReadingIncludesContainerMemory(t *testing.T) {
	need.Root(t)
	runtime := must.Get(oci.New(t.Context(), "runc", ""))(t)
	dir := t.TempDir()
	env := subject.Env{RunID: "snapshott1", Dir: filepath.Join(dir, "runc"), StateDir: filepath.Join(dir, "state"), Lanes: 1, Timeout: time.Minute}
	s := must.Get(runtime.Open(t.Context(), env))(t)
	defer func() {
		err := s.Close(context.Background())
		hs, _ := cgroup.Hierarchies()
		must.OK(t, errors.Join(err, cgroup.Remove(hs, cgroup.Prefix+env.RunID)))
	}()
	meter := must.Get(snapshot.New())(t)
	defer meter.Close()
	b := must.Get(s.Prepare(t.Context(), subject.Run, []int{0}))(t)
	if _, samples, err := b.Start(t.Context()); err != nil || samples[0].Failure != nil {
		t.Fatal(err, samples[0].Failure)
	}
	const held = 256 << 20
	holding, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.(subject.Executor).Exec(holding, 0, probe.HoldArgs(held, time.Hour))
	}()
	defer func() { end(); <-done }()
	boxes := must.Get(s.(subject.Sandboxed).Sandboxes(t.Context()))(t)
	var x record.Reading
	var sum int64
	for deadline := time.Now().Add(time.Minute); sum < held && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		x, sum = meter.Read(t.Context(), boxes, nil, true), 0
		for _, p := range x.Processes {
			if p.Role == record.RoleWorkload {
				sum += p.PSSAnon
			}
		}
	}
	off := sum - held
	check.That(t, off >= 0 && off <= 1<<20, "the workload has %d bytes, want %d: %+v", sum, held, x.Processes)
	var pod []int64
	for deadline := time.Now().Add(time.Minute); len(pod) == 0 && time.Now().Before(deadline); {
		stop := meter.Watch(&x, 50*time.Millisecond)
		time.Sleep(500 * time.Millisecond) // the process may not be scheduled immediately
		pod = stop().Values[record.SeriesPodMemory]
	}
	check.That(t, len(pod) != 0 && pod[len(pod)-1] >= held, "memory of the group: %v", pod)
}

func TestFlushCountsWritesSinceTheEdge(t *testing.T) {
	meter := must.Get(snapshot.New())(t)
	defer meter.Close()
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer f.Close()
	end := meter.End(t.Context(), nil, nil)
	const size = 16 << 20
	must.Get(f.Write(make([]byte, size)))(t)
	must.OK(t, f.Sync()) // the flush itself has nothing to write
	got := meter.Flush(end, "")
	check.That(t, got >= size, "flushed %d bytes, want at least %d", got, size)
	check.Equal(t, "bytes since an unknown time", meter.Flush(nil, ""), -1)
}

func TestSandboxMountsAreFoundInEveryDaemonNamespace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const cgroups = "20 1 0:20 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	line := func(where string) string { return "30 1 0:30 / " + where + " rw - overlay overlay rw\n" }
	write(t, root, "sys/fs/cgroup/memory/tasks", "")
	write(t, root, "proc/self/mountinfo", cgroups)
	write(t, root, "proc/thread-self/mountinfo", cgroups+line("/run/task/tare-x-0-1/rootfs")+line("/run/task/tare-x-0-10/rootfs"))
	write(t, root, "proc/4711/mountinfo", "cut\n"+line("/run/task/tare-x-0-1/rootfs")+line("/run/shared/sandboxes/tare-x-0-2/shared"))
	meter := must.Get(snapshot.Of(machine.Root(root)))(t)
	defer meter.Close()
	daemons := []record.Process{{Pid: 4711, Role: record.RoleDaemon}, {Pid: 4712, Role: record.RoleDaemon}, {Pid: 1, Role: record.RoleShim}}
	left := meter.LeftBeside(&record.Reading{Processes: daemons}, []string{"tare-x-0-1", "tare-x-0-2"})
	want := []string{"/run/task/tare-x-0-1/rootfs", "/run/shared/sandboxes/tare-x-0-2/shared"}
	check.That(t, slices.Equal(left.Mounts, want) && len(left.Processes) == 0, "got %+v, want %q", left, want)
	left = meter.LeftBeside(&record.Reading{}, nil)
	check.That(t, left != nil && len(left.Mounts) == 0, "no IDs: %+v", left)
	write(t, root, "proc/4713/mountinfo/no", "file")
	left = meter.LeftBeside(&record.Reading{Processes: []record.Process{{Pid: 4713, Role: record.RoleDaemon}}}, []string{"tare-x-0-1"})
	check.That(t, left.Mounts == nil, "partly unreadable mounts: %+v", left)
	got := meter.Around([]string{"/none"})
	check.That(t, len(got) == 0, "missing group: %+v", got)
}
