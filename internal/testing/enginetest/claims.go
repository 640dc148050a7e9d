package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// run runs a command in the container on a lane.
func run(t *testing.T, s subject.Session, lane int, args ...string) subject.Executed {
	t.Helper()
	x := must.Get(s.(subject.Executor).Exec(t.Context(), lane, args))(t)
	return x
}

// sh runs a script on lane 0.
func sh(t *testing.T, s subject.Session, script string) subject.Executed {
	t.Helper()
	return run(t, s, 0, "/bin/sh", "-c", script)
}

// Executes checks the contract of subject.Executor, on a session whose lanes 0 and 1 run
// with [Shell] and a volume.
func (c Case) Executes(t *testing.T, s subject.Session, volume string) {
	t.Helper()
	e := s.(subject.Executor)
	x := sh(t, s, "echo out; echo err >&2; exit 7")
	if x.Exit != 7 || x.Output != "out\n" || x.Stderr != "err\n" || !strings.Contains(x.Command, "exit 7") {
		t.Errorf("%+v", x)
	}
	if x, err := e.Exec(t.Context(), 0, []string{"/probe", "--exit", "token"}); err != nil || x.Exit != 0 || !strings.HasPrefix(x.Output, "tare-probe/1 token ") {
		t.Errorf("the probe: %+v, %v", x, err)
	}
	if x, err := e.Exec(t.Context(), 1, []string{"/probe", strings.Repeat("x", 200)}); err != nil || x.Exit != 2 {
		t.Errorf("the probe with a bad argument: %+v, %v", x, err)
	}
	for _, exit := range []int{1, 2, 125, 126, 127, 255} { // engines and runtimes use them for errors of their own
		if x := sh(t, s, fmt.Sprint("exit ", exit)); x.Exit != exit {
			t.Errorf("exit %d: %+v", exit, x)
		}
	}
	if x := sh(t, s, "kill -9 $$"); x.Exit != 128+9 {
		t.Errorf("killed by signal 9: %+v", x)
	}
	c.executesNothing(t, e)
	if x := sh(t, s, chatty); len(x.Output) != subject.MaxOutput || x.Exit != 0 {
		t.Errorf("of 1.6 MB of output %d bytes are kept, exit %d", len(x.Output), x.Exit)
	}
	c.executesAtOnce(t, s, volume)
}

// executesNothing checks the errors for missing programs and missing lanes.
func (c Case) executesNothing(t *testing.T, e subject.Executor) {
	t.Helper()
	// An engine of pods may report the exit code of its runtime.
	if x, err := e.Exec(t.Context(), 0, []string{"/no/such/program"}); err == nil && !(c.Pods && x.Exit > 0) || !strings.Contains(x.Stderr+fmt.Sprint(err), "/no/such/program") {
		t.Errorf("a program that is not there: %+v, %v", x, err)
	}
	for _, n := range []int{-1, 2, 9} {
		if _, err := e.Exec(t.Context(), n, []string{"/probe"}); err == nil {
			t.Errorf("lane %d is not there: no error", n)
		}
	}
}

// executesAtOnce checks that each lane has its own folder, and that commands on two lanes
// run concurrently. Each command waits for a file that the host copies over. A plain
// process of the host has no /data and uses the path of its folder instead.
func (c Case) executesAtOnce(t *testing.T, s subject.Session, volume string) {
	t.Helper()
	e := s.(subject.Executor)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for n := range 2 {
		folder := filepath.Join(volume, strconv.Itoa(n))
		inside := "/data"
		if c.OnHost {
			inside = folder
		}
		wait.Go(func() {
			x, err := e.Exec(ctx, n, []string{"/bin/sh", "-c", `echo lane > "$1"; while ! [ -e "$2" ]; do sleep 0.02; done; read -r a < "$2"; echo "$a $3 $4"`,
				"sh", "/data/mine", "/data/go", "--directory=/data", "a/data"})
			if want := fmt.Sprintf("go %d --directory=%s a/data\n", n, inside); err != nil || x.Exit != 0 || x.Output != want {
				t.Errorf("lane %d: %+v, %v, not %q", n, x, err, want)
			}
		})
	}
	for n := range 2 {
		await(ctx, t, filepath.Join(volume, strconv.Itoa(n), "mine"))
	}
	// Query the containers at the same time.
	if r, is := s.(subject.Reporter); is {
		if told, err := r.Statistics(t.Context()); err != nil || len(told) < 2 || len(sandboxes(t, s)) != 2 {
			t.Errorf("while commands run: %+v, %v", told, err)
		}
	}
	for n := range 2 {
		file := filepath.Join(volume, strconv.Itoa(n), "go")
		must.OK(t, errors.Join(os.WriteFile(file+".new", fmt.Appendln(nil, "go", n), 0o644), os.Rename(file+".new", file)))
	}
	wait.Wait()
}

func await(ctx context.Context, t *testing.T, file string) {
	t.Helper()
	for ctx.Err() == nil {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%s does not come", file)
}

// abandoned runs a command on lane 0 that reports its start and then runs the rest. Its
// context is cancelled after the report.
func abandoned(t *testing.T, s subject.Session, volume, rest string) (subject.Executed, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		await(ctx, t, filepath.Join(volume, "0", "begun"))
		time.Sleep(500 * time.Millisecond) // nothing signals that its output has arrived
		cancel()
	})
	return s.(subject.Executor).Exec(ctx, 0, []string{"/bin/sh", "-c", "echo begun; : > /data/begun; " + rest})
}

// isEnded checks that an abandoned command and its children are gone from the container
// on lane 0. The host sees its processes.
func isEnded(t *testing.T, s subject.Session, volume string) {
	t.Helper()
	group := group(t, sandboxes(t, s)[0].Workload, "memory")
	before := members(t, group)
	x, err := abandoned(t, s, volume, "/probe child & /probe other")
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(x.Output, "begun\n") {
		t.Errorf("%+v, %v", x, err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if slices.Equal(members(t, group), before) {
			return
		}
	}
	t.Errorf("processes %v, before the command %v", members(t, group), before)
}

// saysThatItGoesOn checks that an abandoned command is reported as still running if the
// container on lane 0 has its own kernel.
func saysThatItGoesOn(t *testing.T, s subject.Session, volume string) {
	t.Helper()
	x, err := abandoned(t, s, volume, "exec /probe stays")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the command may run until the container is removed") {
		t.Errorf("%+v, %v", x, err)
	}
}

func sandboxes(t *testing.T, s subject.Session) []subject.Sandbox {
	t.Helper()
	all := must.Get(s.(subject.Sandboxed).Sandboxes(t.Context()))(t)
	return all
}

// group returns the folder of a process's cgroup in the hierarchy of a controller.
func group(t *testing.T, pid int, controller string) string {
	t.Helper()
	groups := must.Get(procs.GroupsOf(pid))(t)
	h := hierarchy(t, controller)
	if h.Version == 2 {
		controller = ""
	}
	return filepath.Join(h.Mount, groups.Paths[controller])
}

func members(t *testing.T, group string) []int {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(group, "cgroup.procs")))(t)
	var out []int
	for f := range strings.FieldsSeq(string(b)) {
		pid, _ := strconv.Atoi(f)
		out = append(out, pid)
	}
	slices.Sort(out)
	return out
}

// sandboxes checks the contract of subject.Sandboxed for containers that run on the lanes
// and have cgroups named after them.
func (c Case) sandboxes(t *testing.T, s subject.Session, lanes []int) {
	t.Helper()
	ids := 1
	if c.Pods {
		ids = 2
	}
	seen := map[string]bool{}
	for i, b := range sandboxes(t, s) {
		if i >= len(lanes) || b.Lane != lanes[i] || len(b.IDs) != ids || b.IDs[0] == "" || seen[b.IDs[0]] {
			t.Fatalf("sandbox %d of lanes %v: %+v", i, lanes, b)
		}
		seen[b.IDs[0]] = true
		of := group(t, b.Workload, "memory")
		if !strings.Contains(of, b.IDs[0]) || !slices.Contains(members(t, of), b.Workload) {
			t.Errorf("lane %d: process %d is in %s, the container is %s", b.Lane, b.Workload, of, b.IDs[0])
		}
		if b.Group != "" && !strings.Contains(of+"/", "/"+strings.Trim(b.Group, "/")+"/") {
			t.Errorf("lane %d: the group is %s, the process is in %s", b.Lane, b.Group, of)
		}
	}
	if len(seen) != len(lanes) {
		t.Errorf("%d sandboxes on lanes %v", len(seen), lanes)
	}
}

func number(t *testing.T, dir, file string) int64 {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(dir, file)))(t)
	n := must.Get(strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64))(t)
	return n
}

// Told returns the content of a cgroup's file in the hierarchy of a controller.
func Told(t *testing.T, controller, group, file string) string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(hierarchy(t, controller).Mount, group, file)))(t)
	return strings.TrimSpace(string(b))
}

// Number is like [Told] for a number.
func Number(t *testing.T, controller, group, file string) int64 {
	t.Helper()
	return number(t, filepath.Join(hierarchy(t, controller).Mount, group), file)
}

// hierarchy returns the hierarchy of a controller.
func hierarchy(t *testing.T, controller string) cgroup.Hierarchy {
	t.Helper()
	hs, err := cgroup.Hierarchies()
	using := cgroup.Using(hs, controller)
	if len(using) == 0 {
		t.Fatalf("there is no hierarchy with %s: %v", controller, err)
	}
	return using[0]
}

// statistics checks the contract of subject.Reporter: at most the usage of the cgroup,
// and at least the usage without its page cache.
func statistics(t *testing.T, s subject.Session, source string) {
	t.Helper()
	all := sandboxes(t, s)
	// Memory used by the runtime for the start is still being freed. The engine's reading
	// is therefore between these readings and those after it.
	var before []int64
	for _, b := range all {
		before = append(before, number(t, group(t, b.Workload, "memory"), "memory.usage_in_bytes"))
	}
	reported, err := s.(subject.Reporter).Statistics(t.Context())
	reported = slices.DeleteFunc(reported, func(r record.Statistic) bool { return r.Source != source }) // there may be others, of pods
	if err != nil || len(reported) != len(all) {
		t.Fatalf("%+v, %v", reported, err)
	}
	const slack = 256 << 10 // each CPU has its own counters
	for i, r := range reported {
		dir := group(t, all[i].Workload, "memory")
		usage := number(t, dir, "memory.usage_in_bytes")
		cpu := number(t, group(t, all[i].Workload, "cpuacct"), "cpuacct.usage")
		t.Logf("lane %d: reported %d bytes and %d ns; the cgroup has %d and %d", r.Lane, r.Memory, r.CPU, usage, cpu)
		if r.Lane != all[i].Lane || r.Memory < min(usage, before[i])-cache(t, dir)-slack || r.Memory > max(usage, before[i])+slack || r.Memory <= 0 {
			t.Errorf("%+v, usage %d, before %d", r, usage, before[i])
		}
		if r.CPU <= 0 || r.CPU > cpu || float64(r.CPU) < 0.5*float64(cpu)-1e7 {
			t.Errorf("lane %d: %d ns reported, the cgroup has %d", r.Lane, r.CPU, cpu)
		}
	}
}

func cache(t *testing.T, dir string) int64 {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(dir, "memory.stat")))(t)
	for line := range strings.Lines(string(b)) {
		if text, is := strings.CutPrefix(line, "total_cache "); is {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n
		}
	}
	t.Fatalf("no total_cache in %s", dir)
	return 0
}

// Limited checks that the kernel's limits of lane 0's cgroup are exactly these, for
// either cgroup version. Pods have no task limit.
func (c Case) Limited(t *testing.T, s subject.Session, limits subject.Limits) {
	t.Helper()
	or := func(n int64, unlimited string) string {
		if n == 0 {
			return unlimited
		}
		return strconv.FormatInt(n, 10)
	}
	type limit struct {
		version                int // cgroup version if only one has the file
		controller, file, want string
	}
	want := []limit{
		{1, "memory", "memory.limit_in_bytes", or(limits.Memory, "9223372036854771712")}, // the kernel's maximum number of whole pages
		{1, "cpu", "cpu.shares", or(limits.CPUShares, "1024")},
		{1, "cpu", "cpu.cfs_quota_us", or(limits.CPUQuota(), "-1")},
		{1, "cpu", "cpu.cfs_period_us", "100000"},
		{2, "memory", "memory.max", or(limits.Memory, "max")},
		{2, "cpu", "cpu.max", or(limits.CPUQuota(), "max") + " 100000"},
	}
	if limits.CPUShares == 0 {
		want = append(want, limit{2, "cpu", "cpu.weight", "100"})
	}
	if !c.Pods {
		want = append(want, limit{0, "pids", "pids.max", or(limits.Pids, "max")})
	}
	pid := sandboxes(t, s)[0].Workload
	for _, l := range want {
		if l.version != 0 && l.version != hierarchy(t, l.controller).Version {
			continue
		}
		b, err := os.ReadFile(filepath.Join(group(t, pid, l.controller), l.file))
		if got := strings.TrimSpace(string(b)); err != nil || got != l.want {
			t.Errorf("%s is %q, not %s: %v", l.file, got, l.want, err)
		}
	}
}
