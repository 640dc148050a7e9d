package record

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// fullRecord holds one line of every type, with every kind of field in use.
func fullRecord() *Record {
	return &Record{
		Header: Header{
			Type: TypeHeader, Schema: Schema, RunID: "tare-1f", Experiment: "lifecycle",
			Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Command: []string{"tare", "lifecycle", "--lanes", "1,50"}, Version: "v0.1.0",
			Plan:        json.RawMessage(`{"version":1}`),
			Environment: Environment{Kernel: "6.18.0", Arch: "amd64", CPUs: 8, Memory: 1 << 34, Cgroup: "v2"},
		},
		Targets: []Target{{
			Type: TypeTarget, Name: "runc", Kind: "oci", Clock: "host",
			Operations: map[string]Operation{"create": {Command: "runc create -b a ID && true", Done: StampReturned, Means: "the command exited"}},
		}},
		Batches: []Batch{
			{Type: TypeBatch, Phase: PhaseWarmup, Target: "runc", Op: "create", Lanes: 1, Released: 1000,
				Samples: []Sample{{Start: 1100, Returned: 2000, First: 1500, Seen: 1600}}},
			{Type: TypeBatch, Phase: PhaseMeasure, Target: "runc", Op: "start", Lanes: 3, Released: 3000, Lost: 1,
				Samples: []Sample{
					{Lane: 0, Start: 3100, Returned: 4000},
					{Lane: 2, Start: 3200, Failure: &Failure{Kind: FailExit, Detail: "exit status 1", Exit: 1}},
				},
				Roles: []Usage{
					{Role: RoleDaemon, Before: 2, After: 2, CPU: 500, PSSBefore: 4096, PSSPeak: 8192, PSSAfter: 4096},
					{Role: RoleShim, After: 2, CPU: 900, PSSPeak: 12288, PSSAfter: 12288, Unread: 1},
				}},
		},
		Nodes:    []Node{{Type: TypeNode, Time: 5000, Phase: PhaseMeasure, Load1: 0.5, Known: true, Busy: 0.25}},
		Readings: []Reading{fullReading()},
		Series:   []Series{fullSeries()},
		Cells:    []Cell{fullCell(), importedCell()},
		Places:   []Place{fullPlace()},
		Ceilings: []Ceiling{fullCeiling()},
		Findings: []Finding{{Type: TypeFinding, Code: "failed-operations", Level: "error", Message: "1 of 3 failed", Advice: "look at it"}},
		End:      &End{Type: TypeEnd, Status: "done", Why: "rounds", Batches: 2, Failures: 1, Elapsed: 9000},
	}
}

// fullReading has every field in use that can be together.
func fullReading() Reading {
	cpu := int64(7e9)
	return Reading{
		Type: TypeReading, Time: 6000, Took: 700, Round: 1, Order: 2, Target: "containerd/runsc", Phase: "hold 64MiB", Sandboxes: 2,
		Moment: MomentEnd, Settled: true,
		Work: &Work{Command: "/probe hold 64MiB", Hold: 64 << 20, Begun: 5000},
		Host: Host{Total: 1 << 34, Free: 1 << 33, Listed: 1 << 24, Available: 1 << 33, Cached: 1 << 30, Shmem: 1 << 20, Load1: 0.25,
			Busy: 9e12, HavePSI: true, PSICPU: 5, Others: 1 << 28, OthersCount: 90},
		Groups: []Group{
			{Path: "/tare-run-x/c-0", Charge: ChargePod, Controllers: []string{"memory", "cpuacct"}, CPU: &cpu,
				Memory: &GroupMemory{Usage: 80 << 20, Peak: 90 << 20, Anon: 70 << 20, File: 1 << 20, Kernel: 3 << 20}},
			{Path: "/system.slice/containerd.service", Charge: ChargeShared, Lane: -1, Controllers: []string{"pids"}, Pids: 31},
		},
		Processes: []Process{
			{Pid: 812, Start: 99000, PPid: 1, Name: "exe", Role: RoleSentry, Rule: "runsc-sandbox among its arguments", Threads: 3,
				Groups: []Membership{
					{Paths: map[string]string{"memory": "/tare-run-x/c-0"}, Threads: []int{812, 813}, Names: []string{"exe", "exe"}},
					{Paths: map[string]string{"": "/"}, Threads: []int{814}},
				}, CPU: 5e9, RSS: 90 << 20, Read: true, PSSAnon: 70 << 20, PageTables: 300 << 10},
			{Pid: 700, Start: 1200, PPid: 1, Name: "containerd", Role: RoleDaemon, Rule: "answers the socket", Lane: -1, Threads: 12,
				Groups: []Membership{{Paths: map[string]string{"memory": "/system.slice/containerd.service"}}}},
		},
		Engine:   []Statistic{{Source: "ctr task metrics", Memory: 70 << 20, CPU: -1}},
		Problems: Problems{Gone: 1, Examples: []string{"/proc/815: gone"}},
	}
}

func fullSeries() Series {
	return Series{
		Type: TypeSeries, Round: 1, Target: "containerd/runsc", Phase: "hold 64MiB", Sandboxes: 2, Interval: 1e8, Missed: 1, OwnCPU: 4e6,
		Times:  []int64{5000, 6000, 8000},
		Values: map[string][]int64{SeriesPodMemory: {1 << 20, -1, 80 << 20}, SeriesNodeBusy: {5, 6, 7}},
	}
}

// fullCell has every field in use that can be together.
func fullCell() Cell {
	return Cell{
		Type: TypeCell, Round: 1, Order: 2, Target: "containerd/kata", Volume: VolumeRootfs, Cache: CacheDirect, Job: "randread 512k",
		Tool: "fio", Version: "fio-3.33", Command: "fio --rw=randread", Layout: &Layout{Files: 1, Bytes: 1 << 30, Took: 4000},
		Dropped: "node", Quiet: true, Begun: 5000, Ended: 9000, SetUp: 700,
		Claim: &Claim{Read: Flow{Bytes: 8 << 30, IOs: 16384, Bandwidth: 4.5e9, IOPS: 8600.5, Latency: Latency{Mean: 900, P50: 880, P95: 1400, P99: 2100, P999: 5300, Max: 5200}}, Seconds: 1.905},
		Seen: &Seen{
			Took: 4100, Device: DeviceUse{Name: "vda", ReadBytes: 1 << 30, ReadIOs: 2048, Busy: 1200}, Disks: DeviceUse{Name: "vda+vdb", ReadBytes: 1 << 30, WriteBytes: 4096, ReadIOs: 2048, WriteIOs: 1},
			Flushed: -1, Group: &GroupUse{ReadBytes: 1 << 30}, Outside: &Transfer{Read: 8 << 30, Write: 5}, Cached: -4096, Throttled: 6,
			HavePSI: true, PSICPU: 0.5, PSIIO: 1.02, Busy: 3.5, Steal: 0.25, CPU: []RoleTime{{RoleVMM, 300}, {RoleVirtiofs, 2900}}, OwnCPU: 12,
			Problems: Problems{Gone: 1, Examples: []string{"/proc/815: gone"}},
		},
	}
}

// importedCell is as little as a line of notes says.
func importedCell() Cell {
	return Cell{Type: TypeCell, Target: "kata", Job: "write 4k", Tool: "dd", Source: "notes.txt:41", Claim: &Claim{Write: Flow{Bandwidth: 128e6}}}
}

func fullPlace() Place {
	return Place{
		Type: TypePlace, Target: "containerd/kata", Volume: VolumeRootfs, HostType: "overlay", Device: "vda", Direct: DirectTaken,
		Mounts: []FileSystem{{Path: "/", Type: "virtiofs", Size: 1 << 40, Free: 1 << 39}, {Path: "/dev/shm", Problem: "gone"}},
	}
}

func fullCeiling() Ceiling {
	return Ceiling{Type: TypeCeiling, Volume: VolumeRootfs, Device: "vda", When: "before", Read: 1.4e8, Write: 1.3e8, ReadIOPS: 312, WriteIOPS: 290.5, Seconds: 2, Command: "fio --rw=read"}
}

// lines returns the record's lines in the order a run writes them.
func lines(r *Record) []any {
	all := []any{r.Header}
	for _, l := range r.Targets {
		all = append(all, l)
	}
	for _, l := range r.Batches {
		all = append(all, l)
	}
	for _, l := range r.Nodes {
		all = append(all, l)
	}
	for _, l := range r.Readings {
		all = append(all, l)
	}
	for _, l := range r.Series {
		all = append(all, l)
	}
	for _, l := range r.Cells {
		all = append(all, l)
	}
	for _, l := range r.Places {
		all = append(all, l)
	}
	for _, l := range r.Ceilings {
		all = append(all, l)
	}
	for _, l := range r.Starts {
		all = append(all, l)
	}
	if r.Logs != nil {
		all = append(all, *r.Logs)
	}
	for _, l := range r.Programs {
		all = append(all, l)
	}
	for _, l := range r.Points {
		all = append(all, l)
	}
	for _, l := range r.Findings {
		all = append(all, l)
	}
	if r.End != nil {
		all = append(all, *r.End)
	}
	return all
}

// plainText is fullRecord as a file, and its lines.
func plainText(t testing.TB) (string, []string) {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b)
	for _, line := range lines(fullRecord()) {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	return b.String(), strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
}

const headerLine = `{"type":"header","schema":1}` + "\n"

const batchPrefix = `{"type":"batch","phase":"measure","target":"runc","op":"create","lanes":2,"released":1000,"samples":`
