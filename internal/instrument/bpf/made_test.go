package bpf

import (
	"time"

	"github.com/tare-bench/tare/record"
)

// newLoading returns a record of the 8-CPU node in a published report.
func newLoading(p Options) *weighing {
	p.Seed = 42
	w := newWeighing(p)
	w.rec.Programs = nil
	w.rec.Header = record.Header{Type: record.TypeHeader, Schema: record.Schema, RunID: "abc123", Version: "v1.0.0", Experiment: Name, Command: []string{"tare", "bpf", p.Case},
		Environment: record.Environment{Kernel: "6.8.0", CPUs: 8, CPUModel: "AMD EPYC 7B13", Memory: 64 << 30, Cgroup: "v2"}}
	w.rec.End.Elapsed = 512 * second
	return w
}

// kmesh returns the programs of a mesh. They share a map and call each other.
func (w *weighing) kmesh() {
	shared := []record.ProgramMap{{ID: 21, Kind: "hash", Name: "km_service", Entries: 65536, Memory: 5_767_168, Shared: 3},
		{ID: 22, Kind: "hash_of_maps", Name: "km_endpoints", Entries: 1024, Memory: 17_301_504, Shared: 2, Inner: 12, InnerMemory: 98_304}}
	w.rec.Programs = []record.Program{
		{Type: record.TypeProgram, ID: 41, Kind: "cgroup_sock_addr", Name: "cgroup_connect4", Full: "cgroup_connect4_prog", Tag: "a3f1c2d4e5b60718", Owner: "kmesh",
			Attached: []string{"cgroup connect4 /mnt/kmesh_cgroup2"}, Holders: []string{"812 kmesh-daemon"}, Pins: []string{"/sys/fs/bpf/bpf_kmesh/sockconn/cgroup_connect4_prog"},
			Memory: 8192, Instructions: 412, Jited: 2310, Maps: append([]record.ProgramMap{{ID: 20, Kind: "prog_array", Name: "km_tailcall", Entries: 16, Memory: 4096, Shared: 1}}, shared...)},
		{Type: record.TypeProgram, ID: 42, Kind: "sock_ops", Name: "sockops_prog", Owner: "kmesh", Attached: []string{"cgroup sock_ops /mnt/kmesh_cgroup2"}, Memory: 12288, Maps: shared},
		{Type: record.TypeProgram, ID: 43, Kind: "cgroup_sock_addr", Name: "cluster_manager", Owner: "kmesh", Memory: 28672, Maps: shared[:1]},
	}
}

// lasting returns a phase of the given number of seconds.
func (w *weighing) lasting(round int, asked record.Asked, phase string, seconds int64) *record.Point {
	seconds, asked.Seconds = seconds*second, float64(seconds)
	p := w.phase(round, asked, phase)
	p.Ended = p.Begun + seconds
	return p
}

// share returns a percentage of a number of seconds, in ns.
func share(percent float64, seconds int64) int64 {
	return int64(percent * float64(seconds*second) / 100)
}

// sent returns a load of the given requests per second for 100 s.
func sent(p *record.Point, qps int64) {
	p.Sent = &record.Sent{Requests: qps * 100, QPS: float64(qps), Mean: 9e6, P50: 8_400_000, P90: 17_100_000, P99: 41_200_000, P999: 92_700_000, Max: 210e6, Sockets: qps * 100}
}

// meshLoads returns case 4.1 of the published report. The client uses 12.3, 35, 61.7 and
// 67 % of the node, the programs 1, 4.1, 8.8 and 9.5 %. Rounds differ by 1 %.
func meshLoads(rounds int) *weighing {
	p := DefaultsOfLoad()
	p.Title, p.Datapath, p.Kmesh, p.URL, p.Rounds, p.Duration = "Kmesh 0.4, pods without a limit", "", true, "http://fortio-server.default.svc:80/", rounds, 100*time.Second
	l := newLoading(p)
	l.kmesh()
	for round := range rounds {
		for i, connections := range []int{3000, 100, 1000, 500} {
			client, bpf := []float64{67, 12.3, 61.7, 35}[i]*8, []float64{9.5, 1, 8.8, 4.1}[i]*8
			qps := []int64{24800, 3900, 24100, 13000}[i] * int64(1000+round) / 1000
			asked := record.Asked{URL: p.URL, Connections: connections, Seconds: 100, Statistics: true}
			idle := l.lasting(round, asked, record.PhaseIdle, 2)
			idle.Runs = []record.ProgramRun{{ID: 41, Name: "cgroup_connect4", Count: 20, Time: 20_000}, {ID: 42, Name: "sockops_prog"}, {ID: 43, Name: "cluster_manager"}}
			load := l.lasting(round, asked, record.PhaseLoad, 100)
			sent(load, qps)
			load.ClientCPU, load.ServerCPU, load.NodeCPU = share(client, 100), share(client/4, 100), min(share(client*1.5, 100), share(798, 100))
			load.Runs = []record.ProgramRun{{ID: 41, Name: "cgroup_connect4", Count: qps*100 + 1000, Time: share(bpf*0.7, 100)},
				{ID: 42, Name: "sockops_prog", Count: qps * 300, Time: share(bpf*0.3, 100)}, {ID: 43, Name: "cluster_manager"}}
			off := asked
			off.Statistics = false
			sent(l.lasting(round, off, record.PhaseLoad, 100), qps*102/100)
		}
	}
	return l
}

// memoryGrows returns a record with one map that grows with services, one that does not,
// and slightly more memory under load.
func memoryGrows() *weighing {
	l := newLoading(DefaultsOfMemory())
	l.kmesh()
	for _, services := range []int{100, 1, 1000} {
		asked := record.Asked{Connections: 100, Seconds: 3, Services: services, Statistics: true}
		mem := []record.ProgramMem{{ID: 41, Name: "cgroup_connect4", Memory: 8192}, {ID: 42, Name: "sockops_prog", Memory: 12288},
			{ID: 21, Map: true, Name: "km_service", Memory: 23 << 20}, {ID: 22, Map: true, Name: "services", Memory: int64(4096 + 104*services), Used: int64(services)}}
		l.lasting(0, asked, record.PhaseIdle, 2).Memory = mem
		load := l.lasting(0, asked, record.PhaseLoad, 3)
		load.Memory = append(mem[:len(mem):len(mem)], record.ProgramMem{ID: 23, Map: true, Name: "sockets", Memory: 2048})
		sent(load, 9000)
		load.Runs = []record.ProgramRun{{ID: 41, Name: "cgroup_connect4", Count: 900_000, Time: share(20, 3)}}
	}
	return l
}

// memoryStays returns case 5 of the published report: 23 MB for any number of services.
func memoryStays() *weighing {
	l := newLoading(DefaultsOfMemory())
	for _, services := range []int{1, 100, 1000} {
		mem := []record.ProgramMem{{ID: 41, Name: "cgroup_connect4", Memory: 8192}, {ID: 21, Map: true, Name: "km_service", Memory: 23_000_000}}
		l.lasting(0, record.Asked{Connections: 100, Services: services, Statistics: true}, record.PhaseIdle, 2).Memory = mem
	}
	return l
}

// openLoop returns a load at a fixed rate.
func openLoop() *weighing {
	p := DefaultsOfLoad()
	p.QPS, p.Connections, p.KeepAlive, p.Rounds = 2000, []int{100}, true, 1
	l := newLoading(p)
	l.kmesh()
	load := l.lasting(0, record.Asked{Connections: 100, QPS: 2000, KeepAlive: true, Seconds: 100, Statistics: true}, record.PhaseLoad, 100)
	sent(load, 1999)
	load.Sent.OpenLoop, load.Sent.Errors = true, 12
	load.ClientCPU = share(40, 100)
	load.Runs = []record.ProgramRun{{ID: 41, Name: "cgroup_connect4", Count: 100, Time: 100_000, Misses: 4}}
	load.Problems = []string{"program 99 xdp_authz was loaded: its runs count from the next phase on"}
	return l
}
