package cri

import (
	"context"
	"errors"
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// The commands that show the same figures.
const (
	ofContainers = "crictl stats"
	ofPods       = "crictl statsp"
)

// Statistics implements subject.Reporter: ListContainerStats, and
// ListPodSandboxStats where it is served (containerd 1.7, CRI-O 1.23). Memory is
// the working set, which both commands show: usage without inactive_file.
//
// They may be old: with a stats_collection_period CRI-O answers what it
// collected up to that many seconds before. With none, its default, and with
// containerd, cgroups are read for the answer. With the cgroupfs driver CRI-O
// (1.34, internal/config/cgmgr) takes a pod's group for a slice of systemd's,
// fails, says so in its log only, and reports nothing of pods. With systemd's the
// pods are in system.slice (cgroupParent), whose figures are not theirs.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	containers, errOne := s.Session.Statistics(ctx)
	if s.facts.cgroups == "systemd" {
		return containers, errOne
	}
	pods, errTwo := s.StatisticsFrom(ctx, ofPods, s.podStatistics)
	return append(containers, pods...), errors.Join(errOne, errTwo)
}

func (d *driver) containerStatistics(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	reply, err := askLong(ctx, "ListContainerStats", d.conn.runtime.ListContainerStats, &api.ListContainerStatsRequest{
		Filter: &api.ContainerStatsFilter{LabelSelector: map[string]string{engine.RunLabel: d.env.RunID}}})
	if err != nil {
		return nil, err
	}
	told := map[string]engine.Usage{}
	for _, s := range states {
		told[s.ID] = engine.Usage{Memory: -1, CPU: -1}
	}
	for _, c := range reply.Stats {
		told[c.GetAttributes().GetId()] = read(c.GetMemory(), c.GetCpu())
	}
	return told, nil
}

func (d *driver) podStatistics(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	reply, err := askLong(ctx, "ListPodSandboxStats", d.conn.runtime.ListPodSandboxStats, &api.ListPodSandboxStatsRequest{
		Filter: &api.PodSandboxStatsFilter{LabelSelector: map[string]string{engine.RunLabel: d.env.RunID}}})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	told, of := map[string]engine.Usage{}, map[string]string{}
	for _, s := range states {
		told[s.ID], of[s.Pod.ID] = engine.Usage{Memory: -1, CPU: -1}, s.ID
	}
	for _, p := range reply.Stats {
		told[of[p.GetAttributes().GetId()]] = read(p.GetLinux().GetMemory(), p.GetLinux().GetCpu())
	}
	return told, nil
}

func read(memory *api.MemoryUsage, cpu *api.CpuUsage) engine.Usage {
	return engine.Usage{Memory: reported(memory.GetWorkingSetBytes()), CPU: reported(cpu.GetUsageCoreNanoSeconds())}
}

// reported is a figure, -1 where there is none that a machine can have.
func reported(v *api.UInt64Value) int64 {
	if v == nil || v.Value > math.MaxInt64 {
		return -1
	}
	return int64(v.Value)
}
