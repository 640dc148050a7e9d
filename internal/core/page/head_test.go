package page_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestHeadHasTheTargetSetup(t *testing.T) {
	t.Parallel()
	rec := &record.Record{Targets: []record.Target{
		{Name: "cri+containerd/kata", Version: "1.6", Config: map[string]string{"kata config": "/k.toml", "kata version": "4.1.0 (Golang)", "hypervisor": "qemu", "sandbox_cgroup_only": "false"}},
		{Name: "containerd/kata", Config: map[string]string{"kata config": "not reported by the engine"}},
		{Name: "docker/kata", Config: map[string]string{"kata config": "/t.toml", "hypervisor": "qemu", "sandbox_cgroup_only": "true", "enable_template": "true", "vm_cache_number": "0"}},
		{Name: "podman/kata", Config: map[string]string{"kata config": "/c.toml", "enable_template": "false", "vm_cache_number": "3"}},
		{Name: "isula/runc", Version: "2.1.5", Config: map[string]string{"storage driver": "overlay2", "client version": "2.1.5", "cgroup driver": "cgroupfs"}},
		{Name: "host"},
	}}
	want := "targets: cri+containerd/kata 1.6 (Kata 4.1.0 (Golang), qemu, sandbox_cgroup_only=false, /k.toml) · containerd/kata (Kata, not reported by the engine) · docker/kata (Kata, qemu, sandbox_cgroup_only=true, VMs from a template, /t.toml) · podman/kata (Kata, VMs from a cache of 3, /c.toml) · isula/runc 2.1.5 · host"
	check.Equal(t, "targets", page.Targets(rec.Targets, ""), want)
	got := page.Surroundings(rec)
	check.That(t, len(got) == 6 && slices.Contains(got, "isula/runc: cgroup driver cgroupfs · client version 2.1.5 · storage driver overlay2"), "%q", got)
}
