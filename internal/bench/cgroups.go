package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/sampler"
	"github.com/tare-bench/tare/internal/workspace"
)

const (
	sampledGroups = 500
	ratioBound    = 1.5
	shareBound    = 0.07 // of a core, at ten ticks a second
)

// cgroups compares a tick of the sampler over many cgroups with loops that read
// the same files on descriptors that are kept, and do nothing with them; then it
// lets the sampler run.
func (b *bench) cgroups() error {
	run, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return err
	}
	return errors.Join(b.sampled(cgroup.Prefix+run.ID), run.Close())
}

func (b *bench) sampled(name string) error {
	paths, files, err := makeGroups(name)
	if err != nil {
		return err
	}
	before, err := settledRSS()
	if err != nil {
		return err
	}
	m, err := openMeter(paths)
	if err != nil {
		return err
	}
	defer m.close()
	for range 10 {
		if err := m.tick(); err != nil {
			return err
		}
	}
	after, err := settledRSS()
	if err != nil {
		return err
	}
	fmt.Printf("%d cgroups, three files each, load average %s\n", sampledGroups, load())
	if err := b.comparePasses(m, files); err != nil {
		return err
	}
	for _, interval := range []time.Duration{time.Second, 100 * time.Millisecond} {
		if err := b.sampleAt(m, interval, ""); err != nil {
			return err
		}
	}
	m.system.SkipIdle(time.Second)
	if err := b.sampleAt(m, 100*time.Millisecond, ", memory.stat of idle groups once a second"); err != nil {
		return err
	}
	fmt.Printf("  memory of the meter: %d KiB resident\n\n", after-before)
	return nil
}

// makeGroups makes groups of the run's, which ends with them, and names their
// paths and the files that a tick reads.
func makeGroups(name string) (paths, files []string, err error) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil, nil, err
	}
	controllers, read := []string{"memory", "cpuacct"}, map[string][]string{
		"memory": {"memory.usage_in_bytes", "memory.stat"}, "cpuacct": {"cpuacct.usage"}}
	if cgroup.ModeOf(hs) == cgroup.V2 {
		controllers, read = []string{"memory", "cpu"}, map[string][]string{
			"memory": {"memory.current", "memory.stat"}, "cpu": {"cpu.stat"}}
	}
	for i := range sampledGroups {
		path := fmt.Sprintf("%s/bench/%d", name, i)
		paths = append(paths, "/"+path)
		// Its parent hands the controllers down.
		if i == 0 {
			if err := cgroup.Delegate(hs, filepath.Dir(path), controllers...); err != nil {
				return nil, nil, err
			}
		}
		for _, h := range cgroup.Using(hs, controllers...) {
			dir := filepath.Join(h.Mount, path)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, nil, err
			}
			for _, c := range controllers {
				if !h.Has(c) {
					continue
				}
				for _, file := range read[c] {
					files = append(files, filepath.Join(dir, file))
				}
			}
		}
	}
	if len(files) != 3*sampledGroups {
		return nil, nil, fmt.Errorf("%d cgroups have %d files of memory and CPU time between them, want three each; mount those controllers", sampledGroups, len(files))
	}
	return paths, files, nil
}

// groupMeter is what the sampler reads.
type groupMeter struct {
	system *cgroupstat.System
	groups []*cgroupstat.Group
	last   cgroupstat.Sample
}

func openMeter(paths []string) (*groupMeter, error) {
	system, err := cgroupstat.Open("")
	if err != nil {
		return nil, err
	}
	m := &groupMeter{system: system}
	for _, path := range paths {
		g, err := system.Group(path)
		if err != nil {
			m.close()
			return nil, err
		}
		m.groups = append(m.groups, g)
	}
	return m, nil
}

func (m *groupMeter) close() {
	for _, g := range m.groups {
		g.Close()
	}
	m.system.Close()
}

func (m *groupMeter) tick() error {
	for _, g := range m.groups {
		if err := g.Sample(&m.last); err != nil {
			return err
		}
		if !m.last.HaveMemory || !m.last.HaveCPU {
			return fmt.Errorf("%s: a sample lacks memory or CPU time", g.Path())
		}
	}
	return nil
}

// comparePasses times a pass over all groups by each side, with a tick's time
// between them, so that none finds the others' work in the CPU's caches.
func (b *bench) comparePasses(m *groupMeter, files []string) error {
	bare, err := openBare(files)
	if err != nil {
		return err
	}
	defer bare.close()
	runtime.LockOSThread() // its CPU time is read
	defer runtime.UnlockOSThread()
	each := func(pass func() error) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			time.Sleep(100 * time.Millisecond)
			begin := threadCPU()
			err := pass()
			return float64(threadCPU()-begin) / sampledGroups, err
		}
	}
	sides := []side{
		{"a bare loop in Go", each(bare.pass)},
		{"the sampler's", each(m.tick)},
	}
	fmt.Printf("  CPU time for one cgroup, of %d passes:\n", b.runs)
	values, err := interleave(b.ctx, b.runs, sides)
	if err != nil {
		return err
	}
	show(sides, values)
	median := func(i int) float64 { return stat.Summarize(list(values[i]), 0.95).Median }
	fmt.Printf("  the sampler's is %.2f times the loop's; bound: %.1f\n", median(1)/median(0), ratioBound)
	return nil
}

// sampleAt lets the sampler run for ten seconds.
func (b *bench) sampleAt(m *groupMeter, interval time.Duration, how string) error {
	const long = 10 * time.Second
	var failed error
	begin, process := time.Now(), processCPU()
	s := sampler.Start(interval, func(int64) {
		if err := m.tick(); err != nil && failed == nil {
			failed = err
		}
	})
	select {
	case <-time.After(long):
	case <-b.ctx.Done():
	}
	r := s.Stop()
	used, took := processCPU()-process, float64(time.Since(begin))
	if err := errors.Join(failed, b.ctx.Err()); err != nil {
		return err
	}
	bound := ""
	if interval < time.Second {
		bound = fmt.Sprintf("; bound: %.0f %%", 100*shareBound)
	}
	fmt.Printf("  every %s%s: %d ticks, %d missed, %s of CPU a tick; %.2f %% of a core, %.2f %% with the rest of the process%s\n", interval, how, r.Ticks, r.Missed,
		milli(float64(r.OwnCPU)/float64(r.Ticks)), 100*float64(r.OwnCPU)/took, 100*float64(used)/took, bound)
	return nil
}

// bareLoop is the least that a program in Go can do to read files.
type bareLoop struct {
	fds []int
	buf []byte
}

func openBare(files []string) (*bareLoop, error) {
	l := &bareLoop{buf: make([]byte, 64<<10)}
	for _, name := range files {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		l.fds = append(l.fds, fd)
	}
	return l, nil
}

func (l *bareLoop) pass() error {
	for _, fd := range l.fds {
		if _, err := unix.Pread(fd, l.buf, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l *bareLoop) close() {
	for _, fd := range l.fds {
		unix.Close(fd)
	}
}

// settledRSS is the process's resident size (KiB) after what it need not keep was
// given back.
func settledRSS() (int, error) {
	debug.FreeOSMemory()
	return rss(os.Getpid())
}

func threadCPU() int64 { return cpuClock(unix.CLOCK_THREAD_CPUTIME_ID) }

func processCPU() int64 { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func cpuClock(id int32) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // all kernels have them
	return t.Nano()
}
