package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestCloseLeavesNoProgramLinkOrMap(t *testing.T) {
	d := attached(t, Options{})
	n := len(linksOf(t, d.IDs()))
	must.That(t, n == 2, "%d links while attached, want 2", n)
	got := len(opened(t))
	must.That(t, got == 7, "%d descriptors while attached, want those of 2 programs, 2 links and 3 maps", got)
	must.Get(d.TestRun(1))(t)
	must.OK(t, d.Close())
	nothingLeft(t, d.IDs())
	check.Error(t, d.Close(), "")
}

func TestKilledProcessLeavesNothingAttached(t *testing.T) {
	g := group(t)
	c, _, out := part(t, "", "attach", g)
	line := must.Get(out.ReadString('\n'))(t)
	ids := make([]uint32, 2)
	_, err := fmt.Sscan(line, &ids[0], &ids[1])
	must.That(t, err == nil, "%q: %v", line, err)
	n := len(linksOf(t, ids))
	must.That(t, n == 2, "%d links while the process was running, want 2", n)
	must.OK(t, c.Process.Kill())
	_ = c.Wait()
	nothingLeft(t, ids)
}

func TestFailedAttachLeavesNothing(t *testing.T) {
	g, err := os.Open(t.TempDir()) // not a cgroup, so the last step fails
	must.OK(t, err)
	defer g.Close()
	need.Root(t)
	o := Options{Most: 1, Backend: service(0)}
	l := must.Get(theLoop())(t)
	if d, err := attach(o, g, l); err == nil {
		_ = d.Close()
		t.Fatal("programs were attached to a folder that is not a cgroup")
	}
	nothingLeft(t, nil)
}

// nothingLeft checks that this process has no BPF descriptors. It polls, because the
// kernel removes objects asynchronously after the last descriptor is closed.
func nothingLeft(t *testing.T, ids []uint32) {
	t.Helper()
	open := opened(t)
	check.That(t, len(open) == 0, "this process has open: %q", open)
	var left string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = ""
		for _, id := range ids {
			if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); err == nil {
				p.Close()
				left += fmt.Sprintf(" program %d", id)
			}
		}
		if links := linksOf(t, ids); len(links) > 0 {
			left += fmt.Sprintf(" links %v", links)
		}
		if left == "" {
			return
		}
	}
	t.Errorf("still open after a minute:%s", left)
}

// linksOf lists the links of programs.
func linksOf(t *testing.T, programs []uint32) (out []link.ID) {
	t.Helper()
	var all link.Iterator
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil {
			continue // removed since the listing
		}
		for _, id := range programs {
			if uint32(info.Program) == id {
				out = append(out, all.ID)
			}
		}
	}
	must.OK(t, all.Err())
	return out
}

// opened lists the BPF descriptors of this process.
func opened(t *testing.T) (out []string) {
	t.Helper()
	all := must.Get(filepath.Glob("/proc/self/fd/*"))(t)
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "anon_inode:bpf") {
			out = append(out, to)
		}
	}
	return out
}

func TestPlaceIsCreatedAndRemoved(t *testing.T) {
	need.Root(t)
	id := fmt.Sprintf("place-%d", os.Getpid())
	path, remove, err := Place(id)
	if errors.Is(err, errUnsupported) {
		t.Skip(err)
	}
	must.OK(t, err)
	defer remove()
	check.Equal(t, fmt.Sprintf("placed at %s", path), filepath.Base(path), cgroup.Prefix+id)
	again, _, err := Place(id)
	check.That(t, err == nil && again == path, "placed again at %q (%v)", again, err)
	must.OK(t, os.Mkdir(filepath.Join(path, "below"), 0o755))
	c, _, _ := part(t, filepath.Join(path, "below"), "client")
	must.OK(t, remove())
	_ = c.Wait()
	_, err = os.Stat(path)
	check.That(t, os.IsNotExist(err), "still exists: %v", err)
	check.Error(t, remove(), "")
}

func TestPlaceWithoutCgroup2IsUnsupported(t *testing.T) {
	for name, hs := range map[string][]cgroup.Hierarchy{
		"nothing mounted": nil,
		"cgroup v1 only":  {{Mount: t.TempDir(), Version: 1, Controllers: []string{"cpu"}}},
	} {
		_, _, err := place(hs, cgroup.Prefix+"x")
		check.That(t, errors.Is(err, errUnsupported), "%s: %v", name, err)
	}
	mount := t.TempDir()
	hybrid := []cgroup.Hierarchy{{Mount: t.TempDir(), Version: 1, Controllers: []string{"cpu"}}, {Mount: mount, Version: 2}}
	path, _, err := place(hybrid, cgroup.Prefix+"x")
	check.That(t, err == nil && path == filepath.Join(mount, cgroup.Prefix+"x"), "hybrid: %q, %v", path, err)
}

func TestPlaceRefusesInvalidRunNames(t *testing.T) {
	for _, id := range []string{"", "../x", "a/b", "-x", "a b", strings.Repeat("a", 65)} {
		path, _, err := Place(id)
		check.That(t, err != nil, "%q was placed at %s", id, path)
	}
}

func TestGrowingMapAllocatesMemoryPerService(t *testing.T) {
	d := attached(t, Options{Most: 1000, Grow: true})
	first := occupied(t, d)
	last := first
	for _, n := range []int{100, 1000} {
		must.OK(t, d.SetServices(n))
		now := occupied(t, d)
		t.Logf("%d services: %d bytes", n, now)
		if !counted(t) {
			check.That(t, now == first, "%d services use %d bytes, but this kernel must report the %d bytes of one", n, now, first)
			continue
		}
		most := last + int64(n)*256
		check.That(t, now >= last+int64(n-100)*serviceSize*2 && now > last && now <= most, "%d services use %d bytes, fewer use %d", n, now, last)
		last = now
	}
	must.OK(t, d.SetServices(1))
	check.Equal(t, "bytes of one service", occupied(t, d), first)
}

func TestPreallocatedMapAllocatesAllMemory(t *testing.T) {
	d := attached(t, Options{Most: 1000})
	first := occupied(t, d)
	check.That(t, first >= 1000*2*serviceSize, "a map for 1000 services uses %d bytes", first)
	must.OK(t, d.SetServices(1000))
	check.Equal(t, "bytes with 1000 services", occupied(t, d), first)
}

// counted reports whether the kernel accounts a map's memory. Before Linux 6.4 it reports
// the size of a full map instead.
func counted(t *testing.T) bool {
	t.Helper()
	version := must.Get(features.LinuxVersionCode())(t)
	return version >= 6<<16+4<<8
}

// occupied returns the memory of the services map as reported by the kernel.
func occupied(t *testing.T, d *Datapath) int64 {
	t.Helper()
	info := must.Get(d.services.Info())(t)
	bytes, said := info.Memlock()
	must.That(t, said, "the kernel does not report the map's memory")
	return int64(bytes)
}
