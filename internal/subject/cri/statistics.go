package cri

import (
	"context"
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
// fails, says so in its log only, and reports nothing of pods.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	containers, errOne := s.containerStatistics(ctx)
	pods, errTwo := s.podStatistics(ctx)
	return append(containers, pods...), s.failed("ask for statistics", errOne, errTwo)
}

func (s *session) containerStatistics(ctx context.Context) ([]record.Statistic, error) {
	out, at := s.unknown(ofContainers, func(h *held) string { return h.container })
	if len(out) == 0 {
		return nil, nil
	}
	reply, err := s.conn.runtime.ListContainerStats(ctx, &api.ListContainerStatsRequest{
		Filter: &api.ContainerStatsFilter{LabelSelector: map[string]string{engine.RunLabel: s.env.RunID}}})
	if err != nil {
		return nil, plain(ctx, "ListContainerStats", err)
	}
	for _, c := range reply.Stats {
		if i, ours := at[c.GetAttributes().GetId()]; ours {
			read(&out[i], c.GetMemory(), c.GetCpu())
		}
	}
	return out, nil
}

func (s *session) podStatistics(ctx context.Context) ([]record.Statistic, error) {
	out, at := s.unknown(ofPods, func(h *held) string { return h.pod })
	if len(out) == 0 {
		return nil, nil
	}
	reply, err := s.conn.runtime.ListPodSandboxStats(ctx, &api.ListPodSandboxStatsRequest{
		Filter: &api.PodSandboxStatsFilter{LabelSelector: map[string]string{engine.RunLabel: s.env.RunID}}})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err != nil {
		return nil, plain(ctx, "ListPodSandboxStats", err)
	}
	for _, p := range reply.Stats {
		if i, ours := at[p.GetAttributes().GetId()]; ours {
			read(&out[i], p.GetLinux().GetMemory(), p.GetLinux().GetCpu())
		}
	}
	return out, nil
}

// unknown is a statistic without figures for each lane that holds a thing, and
// which of them is that of an id.
func (s *session) unknown(source string, id func(h *held) string) (out []record.Statistic, at map[string]int) {
	at = map[string]int{}
	for n, h := range s.held {
		if id := id(h); id != "" {
			at[id] = len(out)
			out = append(out, record.Statistic{Lane: n, Source: source, Memory: -1, CPU: -1})
		}
	}
	return out, at
}

func read(into *record.Statistic, memory *api.MemoryUsage, cpu *api.CpuUsage) {
	into.Memory, into.CPU = reported(memory.GetWorkingSetBytes()), reported(cpu.GetUsageCoreNanoSeconds())
}

// reported is a figure, -1 where there is none that a machine can have.
func reported(v *api.UInt64Value) int64 {
	if v == nil || v.Value > math.MaxInt64 {
		return -1
	}
	return int64(v.Value)
}
