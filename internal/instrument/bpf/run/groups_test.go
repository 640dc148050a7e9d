package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestClientsRunInTheLowestSelectedCgroup(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/b/c", "a/d"} {
		must.OK(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for file, text := range map[string]string{"a/d/cgroup.subtree_control": "cpu memory\n", "a/d/cgroup.type": "domain\n", "a/b/cgroup.subtree_control": "\n", "cgroup.subtree_control": "cpu\n"} {
		must.OK(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
	}
	for name, c := range map[string]struct {
		chosen     []string
		want, says string
	}{
		"one":                               {[]string{"a/b"}, "a/b", ""},
		"root":                              {[]string{"."}, ".", ""},
		"each below the previous one":       {[]string{"a", "a/b/c", "a/b/"}, "a/b/c", ""},
		"siblings":                          {[]string{"a/b", "a/d"}, "", "neither of"},
		"cgroup with delegated controllers": {[]string{"a/d"}, "", "hands controllers (cpu memory) to cgroups below it"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.chosen {
				c.chosen[i] = root + "/" + c.chosen[i]
			}
			got, err := standing(c.chosen)
			if c.says == "" && (err != nil || got != filepath.Join(root, c.want)) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A program attached to an empty cgroup still handles the load.
func TestProgramsSelectedByCgroupHandleTheLoad(t *testing.T) {
	need.Root(t)
	dir, remove, err := datapath.Place(fmt.Sprintf("chosen-%d", os.Getpid()))
	must.OK(t, err)
	defer func() {
		check.Error(t, remove(), "")
	}()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "tare_t_connect", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	must.OK(t, err)
	defer p.Close()
	l := must.Get(link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInet4Connect, Program: p}))(t)
	defer l.Close()
	server := must.Get(load.Serve(t.Context()))(t)
	defer server.Close()
	meter := must.Get(bpfstat.Open())(t)
	defer meter.Close()
	plan := bpf.DefaultsOfLoad()
	plan.Datapath, plan.Cgroups, plan.URL = "", []string{dir}, server.URL()
	plan.Connections, plan.Duration, plan.Idle, plan.Rounds = []int{2}, 200*time.Millisecond, 100*time.Millisecond, 1
	id := strconv.Itoa(os.Getpid())
	rec, j, err := Run(t.Context(), Options{
		Plan: plan, Options: run.Options{RunID: id, Write: func(any) error { return nil }}, Meter: meter,
		Place: func() (string, func() error, error) { return datapath.Place(id) },
		Start: func(ctx context.Context, o load.ClientOptions) (Clients, error) { return load.Start(ctx, o) },
		Limit: func(place string, cpus float64, n int) (Groups, error) { return MakeGroups(id, place, cpus, n) },
		Node:  func() (int64, int, error) { return 0, 1, nil },
		Own:   func() int64 { return 0 },
	})
	must.OK(t, err)
	for _, p := range rec.Points {
		check.That(t, p.Phase != record.PhaseLoad || !p.Asked.Statistics || len(p.Runs) == 1 && p.Sent != nil && p.Runs[0].Count == p.Sent.Requests,
			"%+v of %+v", p.Runs, p.Sent)
	}
	if r := j.Rows[0]; !r.All.Of("cpu", "role", "bpf").Known() {
		t.Errorf("unknown cost: %+v", j.Found)
	}

}
