package cgroupstat

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

const (
	holdVariable = "TARE_TEST_HOLD"
	held         = 32 << 20
)

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		hold()
	}
	os.Exit(m.Run())
}

// hold allocates anonymous memory on request, and then writes a file in a tmpfs on request.
func hold() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for _, flags := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
		if !in.Scan() {
			os.Exit(0)
		}
		b, err := unix.Mmap(-1, 0, held, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|flags)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		fmt.Println("held")
	}
	in.Scan()
	os.Exit(0)
}

// run creates a cgroup and removes it at the end of the test.
func run(t *testing.T) (name string, hs []cgroup.Hierarchy) {
	t.Helper()
	need.Root(t)
	hs = must.Get(cgroup.Hierarchies())(t)
	name = fmt.Sprintf("%sgroup%x", cgroup.Prefix, rand.Uint64())
	t.Cleanup(func() { must.OK(t, cgroup.Remove(hs, name)) })
	must.OK(t, cgroup.Delegate(hs, name+"/c", "memory", "cpuacct", "cpu", "pids"))
	return name, hs
}

func TestMemoryIsChargedToTheGroup(t *testing.T) {
	name, hs := run(t)
	program := must.Get(os.Executable())(t)
	child := exec.Command(program)
	child.Env = append(os.Environ(), holdVariable+"=1")
	in := must.Get(child.StdinPipe())(t)
	out := must.Get(child.StdoutPipe())(t)
	must.OK(t, child.Start())
	defer func() {
		in.Close()
		_ = child.Wait()
	}()
	lines := bufio.NewScanner(out)
	must.That(t, lines.Scan(), "%v", lines.Err())
	for _, h := range cgroup.Using(hs, "memory", "cpuacct", "cpu", "pids") {
		must.OK(t, os.WriteFile(filepath.Join(h.Mount, name, "c", "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0))
	}
	s := must.Get(Open(""))(t)
	defer s.Close()
	g := s.group(t, "/"+name+"/c")
	var readings [3]record.Group
	var samples [3]Sample
	for i := range readings {
		if i > 0 {
			fmt.Fprintln(in)
			must.That(t, lines.Scan() && lines.Text() == "held", "output of the child: %q, %v", lines.Text(), lines.Err())
		}
		// The kernel aggregates memory.stat every two seconds. A read also aggregates if
		// much has changed.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			must.OK(t, errors.Join(g.Read(&readings[i]), g.Sample(&samples[i])))
			was := readings[max(i-1, 0)].Memory
			grown := readings[i].Memory.Anon + readings[i].Memory.Shmem - was.Anon - was.Shmem
			if i == 0 || grown > held-1<<20 || time.Now().After(deadline) {
				break
			}
		}
	}
	for _, c := range []struct {
		claim     string
		got, want int64
	}{
		{"usage includes anonymous memory", readings[1].Memory.Usage - readings[0].Memory.Usage, held},
		{"anonymous memory by kind", readings[1].Memory.Anon - readings[0].Memory.Anon, held},
		{"no shared memory", readings[1].Memory.Shmem - readings[0].Memory.Shmem, 0},
		{"no page cache", readings[1].Memory.File - readings[0].Memory.File, 0},
		{"usage includes shared memory", readings[2].Memory.Usage - readings[1].Memory.Usage, held},
		{"shared memory by kind", readings[2].Memory.Shmem - readings[1].Memory.Shmem, held},
		{"shared memory is not page cache", readings[2].Memory.File - readings[1].Memory.File, 0},
		{"no anonymous memory", readings[2].Memory.Anon - readings[1].Memory.Anon, 0},
		{"mapped memory", readings[2].Memory.Mapped - readings[1].Memory.Mapped, held},
		{"usage in a sample", samples[1].Usage - samples[0].Usage, held},
		{"anonymous memory in a sample", samples[1].Anon - samples[0].Anon, held},
		{"shared memory in a sample", samples[2].Shmem - samples[1].Shmem, held},
		{"peak is at least the usage", max(readings[2].Memory.Usage-readings[2].Memory.Peak, 0), 0},
	} {
		d := c.got - c.want
		check.That(t, max(d, -d) <= 1<<20, "%s: %d bytes, want %d", c.claim, c.got, c.want)
	}
	r := readings[2]
	check.That(t, r.CPU != nil && *r.CPU > *readings[0].CPU && *r.CPU <= int64(10*time.Second) && samples[2].CPU >= *r.CPU,
		"CPU time %v, before %v, in a later sample %d", r.CPU, readings[0].CPU, samples[2].CPU)
	check.Equal(t, "limit", r.Memory.Limit, 0)
	// The Go runtime of the child may start threads, but does not end any.
	before := tasksIn(t, hs, name)
	must.OK(t, g.Read(&r))
	after := tasksIn(t, hs, name)
	check.That(t, before >= 1 && r.Pids >= before && r.Pids <= after, "%d tasks, want between %d and %d", r.Pids, before, after)
}

// tasksIn returns the processes and threads of a group.
func tasksIn(t *testing.T, hs []cgroup.Hierarchy, name string) int64 {
	t.Helper()
	for _, h := range cgroup.Using(hs, "pids") {
		for _, file := range []string{"tasks", "cgroup.threads"} {
			if b, err := os.ReadFile(filepath.Join(h.Mount, name, "c", file)); err == nil {
				return int64(len(strings.Fields(string(b))))
			}
		}
	}
	t.Fatal("no list of tasks")
	return 0
}

func TestSampleDoesNotAllocate(t *testing.T) {
	name, _ := run(t)
	s := must.Get(Open(""))(t)
	defer s.Close()
	g := s.group(t, "/"+name+"/c")
	var into Sample
	if n := testing.AllocsPerRun(1000, func() {
		if err := g.Sample(&into); err != nil || !into.HaveMemory || !into.HaveCPU {
			t.Fatal(err, into)
		}
	}); n != 0 {
		t.Errorf("%v allocations per sample", n)
	}
}

func TestRemovedGroupIsGoneWithOpenFiles(t *testing.T) {
	name, hs := run(t)
	s := must.Get(Open(""))(t)
	defer s.Close()
	read, fresh := s.group(t, "/"+name+"/c"), s.group(t, "/"+name+"/c")
	var got record.Group
	var sample Sample
	must.OK(t, errors.Join(read.Read(&got), read.Sample(&sample), fresh.Sample(&sample)))
	for _, again := range []bool{false, true} {
		must.OK(t, cgroup.Remove(hs, name+"/c"))
		if again { // a new group with the same name
			must.OK(t, cgroup.Delegate(hs, name+"/c", "memory", "cpuacct", "cpu", "pids"))
		}
		for claim, g := range map[string]*Group{"read before": read, "only sampled before": fresh} {
			err := g.Read(&got)
			check.That(t, errors.Is(err, ErrGone) && got.Memory == nil && got.CPU == nil, "%s: %v, %+v", claim, err, got)
			err = g.Sample(&sample)
			check.That(t, errors.Is(err, ErrGone) && sample == (Sample{}), "%s: %v, %+v", claim, err, sample)
		}
	}
	g, err := s.Group("/" + name + "/d")
	check.That(t, errors.Is(err, ErrGone), "%v, %v", g, err)
}
