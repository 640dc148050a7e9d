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

// laneCost is what one lane takes of the machine.
type laneCost struct {
	tasks  int64 // processes and threads: each has a PID of its own
	memory int64
}

const mib = 1 << 20

// What one lane needs while all others are at their operation too, and what an engine
// adds: rounded up from the most tasks and the least available memory that 100 lanes
// at once made of a machine with 2 CPUs (Linux 6.18; runc 1.1, crun 1.8, gVisor of
// 2026, Docker 20.10, Podman 4.3, containerd 1.6, CRI-O 1.34). Kata's is that of an
// idle sandbox of Kata 4.1 with QEMU: what its guest has touched. A runtime that is
// not here is taken for runc, whose own processes are the most; isula's command line
// for podman's.
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

// room is what a machine has left. Where a limit is not known it does not bind.
type room struct {
	tasks, memory int64
	// own is what the limit of tare's own cgroup leaves, for what it starts itself, and
	// whose file that is.
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

// manyLanes is from how many at once it is said what they will need.
const manyLanes = 200

// fits says what so many lanes of the neediest of the targets will need, and what of
// that the machine has not got. Targets are visited one after the other. said is empty
// where that is little.
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
		all = append(all, fmt.Sprintf("%d of them are left by %s (raise it)", r.own, r.ownFile))
	}
	if over(n.memory, r.memory) {
		all = append(all, fmt.Sprintf("%s of memory is available", page.Memory(float64(r.memory))))
	}
	if all == nil && lanes < manyLanes && !over(2*n.tasks, r.tasks) && !over(2*n.memory, r.memory) {
		return "", ""
	}
	return fmt.Sprintf("%d lanes at once: %s may need %d processes and threads and %s of memory, and the machine's load may come to %d",
		lanes, most.Name, n.tasks, page.Memory(float64(n.memory)), lanes), strings.Join(all, ", and ")
}

// ownTasks are those that are in tare's own cgroup: none where an engine's daemon
// starts everything.
func ownTasks(t record.Target, tasks int64) int64 {
	switch via := t.Config["via"]; {
	case engineNeed[t.Kind] == laneCost{}, via == "command line", strings.Contains(via, "cli"):
		return tasks
	}
	return 0
}

// checkRoom says what many lanes will need, and refuses those for which the machine
// has not got it, unless that was asked for: then the record says so.
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
		return nil, fmt.Errorf("%s; but %s: use fewer lanes, or begin all the same with --force", said, lacks)
	case lacks != "":
		return []record.Finding{{Code: finding.NoRoom, Level: finding.Warning, Lanes: lanes, Message: said + "; but " + lacks,
			Advice: "it was begun by --force: failures and long times may be the machine's, and not a target's"}}, nil
	case said != "" && !out.quiet:
		fmt.Fprintln(s.Err, "tare: "+said)
	}
	return nil, nil
}
