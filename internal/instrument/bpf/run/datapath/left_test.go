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
	"github.com/cilium/ebpf/link"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

func TestCloseLeavesNoProgramLinkOrMap(t *testing.T) {
	d := attached(t, Options{Sockops: true, Name: "left_1"})
	if n := len(linksOf(t, d.IDs())); n != 2 {
		t.Fatalf("%d links while attached, want 2", n)
	}
	if got := named(t, "left_1"); got != 5 {
		t.Fatalf("%d programs and maps while attached, want 2 and 3", got)
	}
	if _, err := d.TestRun(1); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, d.IDs(), "left_1")
	if err := d.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	for name, ask := range map[string]func() error{
		"SetHeavy":    func() error { return d.SetHeavy(1) },
		"SetServices": func() error { return d.SetServices(1) },
		"TestRun":     func() error { _, err := d.TestRun(1); return err },
		"Connections": func() error { _, _, err := d.Connections(); return err },
	} {
		if err := ask(); !errors.Is(err, errClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestAKilledProcessLeavesNothingAttached(t *testing.T) {
	g := group(t)
	c, _, out := part(t, "", "attach", g)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uint32, 2)
	if _, err := fmt.Sscan(line, &ids[0], &ids[1]); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if n := len(linksOf(t, ids)); n != 2 {
		t.Fatalf("%d links while it lived, want 2", n)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	nothingLeft(t, ids, "")
}

func TestAFailedAttachLeavesNothing(t *testing.T) {
	g, err := os.Open(t.TempDir()) // which is no cgroup: the last step fails
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	needsRoot(t)
	o := Options{Name: "left_2", Services: 1, Sockops: true}
	o.Backend = service(0)
	l, err := theLoop()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := attach(o, g, l); err == nil {
		_ = d.Close()
		t.Fatal("programs were attached to a folder that is no cgroup")
	}
	nothingLeft(t, nil, "left_2")
}

// nothingLeft gives the kernel a moment: it takes things down behind the last
// descriptor's back.
func nothingLeft(t *testing.T, ids []uint32, name string) {
	t.Helper()
	var left string
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
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
		if n := named(t, name); name != "" && n > 0 {
			left += fmt.Sprintf(" %d programs and maps %s…", n, name)
		}
		if left == "" {
			return
		}
	}
	t.Errorf("5 s later there are still:%s", left)
}

// linksOf lists the links of programs.
func linksOf(t *testing.T, programs []uint32) (out []link.ID) {
	t.Helper()
	var all link.Iterator
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil {
			continue // gone meanwhile
		}
		for _, id := range programs {
			if uint32(info.Program) == id {
				out = append(out, all.ID)
			}
		}
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// named counts programs and maps whose name begins so.
func named(t *testing.T, prefix string) (n int) {
	t.Helper()
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			if info, err := p.Info(); err == nil && strings.HasPrefix(info.Name, prefix) {
				n++
			}
			p.Close()
		}
	}
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		if m, err := ebpf.NewMapFromID(id); err == nil {
			if info, err := m.Info(); err == nil && strings.HasPrefix(info.Name, prefix) {
				n++
			}
			m.Close()
		}
	}
	return n
}

func TestPlaceIsTheRunsOwnFolderAndGoesAgain(t *testing.T) {
	needsRoot(t)
	id := fmt.Sprintf("place-%d", os.Getpid())
	path, remove, err := Place(id)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if filepath.Base(path) != cgroup.Prefix+id {
		t.Errorf("it is at %s", path)
	}
	if again, _, err := Place(id); err != nil || again != path {
		t.Errorf("a second time it is at %q (%v)", again, err)
	}
	if err := os.Mkdir(filepath.Join(path, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, _, _ := part(t, filepath.Join(path, "below"), "client")
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if err := remove(); err != nil {
		t.Errorf("removing twice: %v", err)
	}
}

func TestPlaceWithoutCgroup2IsUnsupported(t *testing.T) {
	for name, hs := range map[string][]cgroup.Hierarchy{
		"nothing is mounted": nil,
		"v1 only":            {{Mount: t.TempDir(), Version: 1, Controllers: []string{"cpu"}}},
	} {
		if _, _, err := place(hs, cgroup.Prefix+"x"); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mount := t.TempDir()
	hybrid := []cgroup.Hierarchy{{Mount: t.TempDir(), Version: 1, Controllers: []string{"cpu"}}, {Mount: mount, Version: 2}}
	if path, _, err := place(hybrid, cgroup.Prefix+"x"); err != nil || path != filepath.Join(mount, cgroup.Prefix+"x") {
		t.Errorf("hybrid: %q, %v", path, err)
	}
}

func TestPlaceRefusesWhatIsNoRunsName(t *testing.T) {
	for _, id := range []string{"", "../x", "a/b", "-x", "a b", strings.Repeat("a", 65)} {
		if path, _, err := Place(id); err == nil {
			t.Errorf("%q was placed at %s", id, path)
		}
	}
}
