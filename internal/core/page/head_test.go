package page_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

func TestAHeadSaysHowTargetsAreSetUp(t *testing.T) {
	t.Parallel()
	rec := &record.Record{Targets: []record.Target{
		{Name: "cri+containerd/kata", Version: "1.6", Config: map[string]string{"kata config": "/k.toml", "kata version": "4.1.0 (Golang)", "hypervisor": "qemu", "sandbox_cgroup_only": "false"}},
		{Name: "containerd/kata", Config: map[string]string{"kata config": "not told by the engine"}},
		{Name: "isula/runc", Version: "2.1.5", Config: map[string]string{"storage driver": "overlay2", "client version": "2.1.5", "cgroup driver": "cgroupfs"}},
		{Name: "host"},
	}}
	want := "targets: cri+containerd/kata 1.6 (Kata 4.1.0 (Golang), qemu, sandbox_cgroup_only=false, /k.toml) · containerd/kata (Kata, not told by the engine) · isula/runc 2.1.5 · host"
	if got := page.Targets(rec.Targets, ""); got != want {
		t.Errorf("%s", got)
	}
	if got := page.Surroundings(rec); len(got) != 4 || !slices.Contains(got, "isula/runc: cgroup driver cgroupfs · client version 2.1.5 · storage driver overlay2") {
		t.Errorf("%q", got)
	}
}
