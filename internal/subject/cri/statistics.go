package cri

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// The commands that show the same figures as the calls.
const (
	ofContainers = "crictl stats"
	ofPods       = "crictl statsp"
)

// Statistics implements subject.Reporter by ListContainerStats and, where served (containerd
// 1.7, CRI-O 1.23), ListPodSandboxStats. Memory is the working set, usage without
// inactive_file, as both commands show it.
//
// With a stats_collection_period CRI-O's figures may be that many seconds old. There is no period by
// default. Then, and with containerd, the cgroups are read for each reply. With the cgroupfs
// driver CRI-O (1.34, internal/config/cgmgr) mistakes a pod's cgroup for a systemd slice, logs
// an error and reports no pods. With the systemd driver the pods are in system.slice (see
// cgroupParent), whose figures are not the pods' own.
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
	usage := map[string]engine.Usage{}
	for _, s := range states {
		usage[s.ID] = engine.Usage{Memory: -1, CPU: -1}
	}
	for _, c := range reply.Stats {
		usage[c.GetAttributes().GetId()] = read(c.GetMemory(), c.GetCpu())
	}
	return usage, nil
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
	usage, of := map[string]engine.Usage{}, map[string]string{}
	for _, s := range states {
		usage[s.ID], of[s.Pod.ID] = engine.Usage{Memory: -1, CPU: -1}, s.ID
	}
	for _, p := range reply.Stats {
		usage[of[p.GetAttributes().GetId()]] = read(p.GetLinux().GetMemory(), p.GetLinux().GetCpu())
	}
	return usage, nil
}

func read(memory *api.MemoryUsage, cpu *api.CpuUsage) engine.Usage {
	used, time := memory.GetWorkingSetBytes(), cpu.GetUsageCoreNanoSeconds()
	return engine.Usage{Memory: engine.Reported(used != nil, used.GetValue(), 1), CPU: engine.Reported(time != nil, time.GetValue(), 1)}
}
