package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// laneCost is the number of tasks and the memory that one lane needs.
type laneCost struct {
	tasks  int64 // processes and threads, which each use a PID
	memory int64
}

const mib = 1 << 20

// Needs of one lane of a runtime or an engine, while all other lanes run their operation
// too. The values are rounded up from measurements with 100 lanes on a machine with 2 CPUs:
// the highest number of tasks and the lowest available memory. Versions: Linux 6.18; runc
// 1.1, crun 1.8, gVisor of 2026, Docker 20.10, Podman 4.3, containerd 1.6, CRI-O 1.34.
// Kata's value is an idle sandbox of Kata 4.1 with QEMU: the memory that its guest touched.
// Other runtimes get the values of runc, which has the most processes of its own. iSulad's
// command line gets those of Podman's.
var (
	runtimeNeed = map[string]laneCost{"host": {3, 1 * mib}, "floor": {3, 1 * mib}, "runc": {15, 8 * mib}, "crun": {5, 3 * mib}, "runsc": {30, 40 * mib}, "kata": {60, 384 * mib}}
	engineNeed  = map[string]laneCost{"docker": {25, 30 * mib}, "containerd": {10, 6 * mib}, "cri": {15, 10 * mib}, "podman": {12, 16 * mib}, "isula": {12, 16 * mib}}
)

func needOf(t record.Target) laneCost {
	runtime := strings.ToLower(cmp.Or(t.Config["runtime"], t.Name[strings.LastIndexByte(t.Name, '/')+1:]))
	kind := "runc"
	switch {
	case t.Kind == "host" || t.Kind == "floor":
		kind = t.Kind
	case kata.Is(runtime):
		kind = "kata"
	case strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor"):
		kind = "runsc"
	case strings.Contains(runtime, "crun"):
		kind = "crun"
	}
	n, e := runtimeNeed[kind], engineNeed[t.Kind]
	return laneCost{n.tasks + e.tasks, n.memory + e.memory}
}

// room is the free capacity of a machine. An unknown limit does not apply.
type room struct {
	tasks, memory int64
	// own is the number of tasks left in tare's own cgroup, for processes that tare starts
	// itself. ownFile is the file of that limit.
	own     int64
	ownFile string
}

func roomHere() (r room, err error) {
	h, err := nodestat.ReadHost(machine.Root(""))
	if err != nil {
		return r, err
	}
	r.memory = h.Available
	if r.tasks = h.MaxTasks - h.Tasks; h.MaxTasks == 0 {
		r.tasks = -1
	}
	r.own = -1
	hs, err := machine.Root("").Cgroups()
	in, inErr := procs.GroupsOf(procs.Own()[0])
	if err := errors.Join(err, inErr); err != nil {
		return r, err
	}
	if left, _, file, ok := cgroup.PIDsLeft("", hs, in); ok {
		r.own, r.ownFile = left, file
	}
	return r, nil
}

// manyLanes is the smallest number of lanes whose needs are always printed.
const manyLanes = 200

// fits returns two texts about the most demanding target. said is what the given number of
// lanes needs on it. lacks is the part of these needs that exceeds the capacity of the
// machine. Targets run one after the other, so their needs do not add up. said is empty if
// the needs are small.
func (r room) fits(targets []record.Target, lanes int) (said, lacks string) {
	var most record.Target
	var n laneCost
	for _, t := range targets {
		if x := needOf(t); x.tasks > n.tasks || x.tasks == n.tasks && x.memory > n.memory {
			most, n = t, x
		}
	}
	n.tasks, n.memory = n.tasks*int64(lanes), n.memory*int64(lanes)
	over := func(want, have int64) bool { return have >= 0 && want > have }
	var all []string
	if over(n.tasks, r.tasks) {
		all = append(all, fmt.Sprintf("%d processes and threads are left (raise kernel.pid_max and kernel.threads-max with sysctl)", r.tasks))
	}
	if over(ownTasks(most, n.tasks), r.own) {
		all = append(all, fmt.Sprintf("%d of them are available within %s (raise it)", r.own, r.ownFile))
	}
	if over(n.memory, r.memory) {
		all = append(all, fmt.Sprintf("%s of memory is available", page.Memory(float64(r.memory))))
	}
	if all == nil && lanes < manyLanes && !over(2*n.tasks, r.tasks) && !over(2*n.memory, r.memory) {
		return "", ""
	}
	return fmt.Sprintf("%d lanes at once: %s may need %d processes and threads and %s of memory, and the load average may reach %d",
		lanes, most.Name, n.tasks, page.Memory(float64(n.memory)), lanes), strings.Join(all, ", and ")
}

// ownTasks returns how many tasks run in tare's own cgroup: none if an engine's daemon
// starts all of them.
func ownTasks(t record.Target, tasks int64) int64 {
	switch via := t.Config["via"]; {
	case engineNeed[t.Kind] == laneCost{}, via == "command line", strings.Contains(via, "cli"):
		return tasks
	}
	return 0
}

// checkRoom prints the needs of many lanes. It returns an error if the machine lacks
// capacity; with --force it returns a finding instead.
func checkRoom(s *app, targets []subject.Target, lanes int, out *outputFlags) ([]record.Finding, error) {
	if lanes <= 1 {
		return nil, nil
	}
	r, err := roomHere()
	if err != nil {
		return nil, err
	}
	infos := make([]record.Target, len(targets))
	for i, t := range targets {
		infos[i] = t.Info()
	}
	said, lacks := r.fits(infos, lanes)
	switch {
	case lacks != "" && !out.force:
		return nil, fmt.Errorf("%s, but %s: use fewer lanes, or start anyway with --force", said, lacks)
	case lacks != "":
		return []record.Finding{{Code: finding.NoRoom, Level: finding.Warning, Lanes: lanes, Message: said + ", but " + lacks,
			Advice: "the run was started with --force: the machine, not the target, may cause failures and long times"}}, nil
	case said != "" && !out.quiet:
		fmt.Fprintln(s.Err, "tare: "+said)
	}
	return nil, nil
}
