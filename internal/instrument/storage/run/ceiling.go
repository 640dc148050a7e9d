package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/record"
)

// Parameters of a ceiling measurement: many direct requests in flight, on a file of its
// own. The larger of the measurements before and after the rounds is the most that a
// job can get from the device. The file is as large as the jobs' files, within limits.
// In a smaller file, concurrent requests hit the same blocks, and the device answers
// from its cache.
const (
	ceilingFile  = 256 << 20 // bytes, at most
	leastCeiling = 64 << 20
	ceilingDepth = 32      // requests in flight
	largeBlock   = 1 << 20 // for bandwidth
	smallBlock   = 4 << 10 // for IOPS
)

// ceiling measures on the host what the volume's device delivers. A failure is
// recorded and does not end the run.
func (s *stage) ceiling(ctx context.Context, when string) error {
	took := s.options.Plan.Ceiling
	if took <= 0 || s.volume.Kind == record.VolumeTmpfs || s.options.Fio == "" || ctx.Err() != nil {
		return nil
	}
	s.tell("ceiling", record.CacheDirect, "host", "measuring the device "+when+" the rounds")
	c := record.Ceiling{Volume: s.volume.Name, Device: s.volume.OwnOn.Device, When: when, Seconds: took.Seconds()}
	if c.Failure = s.measureCeiling(ctx, &c, took); c.Failure != nil && ctx.Err() != nil {
		return nil
	}
	return s.Line(c)
}

func (s *stage) measureCeiling(ctx context.Context, c *record.Ceiling, took time.Duration) *record.Failure {
	file := s.volume.Workload.Device
	if file == "" {
		file = filepath.Join(s.volume.Own, "ceiling")
		defer os.Remove(file)
	}
	size := min(ceilingFile, max(s.needs, leastCeiling))
	if f := s.roomForCeiling(ctx, size); f != nil {
		return f
	}
	if _, e, err := probed(ctx, s.schedule, s.options.Run, probe.FillArgs(size, file), probe.ParseFilled); err != nil {
		return &fail(record.FailError, &e, "the file for the ceiling measurement could not be written: %v", err).Failure
	}
	for _, m := range []struct {
		rw    string
		block int64
		take  func(record.Reported)
	}{
		{"read", largeBlock, func(x record.Reported) { c.Read = x.Read.Bandwidth }},
		{"randread", smallBlock, func(x record.Reported) { c.ReadIOPS = x.Read.IOPS }},
		{"write", largeBlock, func(x record.Reported) { c.Write = x.Write.Bandwidth }},
		{"randwrite", smallBlock, func(x record.Reported) { c.WriteIOPS = x.Write.IOPS }},
	} {
		args := ceilingArgs(s.options.Fio, file, m.rw, m.block, size, took)
		c.Command = cmp.Or(c.Command, lane.Quote(args))
		claim, f := s.fioOnHost(ctx, args, took)
		if f != nil {
			return f
		}
		m.take(claim)
	}
	return nil
}

// roomForCeiling returns a failure if the file does not fit on the volume, as [visit.room]
// does for files of jobs, or the device is in use by now.
func (s *stage) roomForCeiling(ctx context.Context, size int64) *record.Failure {
	if err := s.volume.Check(); err != nil {
		return &fail(record.FailState, nil, "nothing was written: %v", err).Failure
	}
	if s.volume.Workload.Device != "" {
		if s.volume.Size < size {
			return &fail(record.FailError, nil, "%s to measure it with do not fit in the %s of the device", mib(size), mib(s.volume.Size)).Failure
		}
		return nil
	}
	list, e, err := probed(ctx, s.schedule, s.options.Run, probe.FileSystemArgs(s.volume.Own), probe.ParseFileSystems)
	switch {
	case err != nil:
		return &fail(record.FailError, &e, "the free space of the volume is unknown: %v", err).Failure
	case list[0].Errno == 0 && list[0].Size > 0 && float64(size) > MaxOfDisk*float64(list[0].Free):
		return &fail(record.FailError, nil, "a file of %s does not fit in 90 %% of the %s that are free on the volume", mib(size), mib(list[0].Free)).Failure
	}
	return nil
}

func ceilingArgs(fio, file, rw string, block, size int64, took time.Duration) []string {
	return []string{fio, "--name=ceiling", "--filename=" + file, "--rw=" + rw, "--bs=" + strconv.FormatInt(block, 10), "--size=" + strconv.FormatInt(size, 10),
		"--direct=1", "--ioengine=libaio", "--iodepth=" + strconv.Itoa(ceilingDepth), "--time_based", fmt.Sprintf("--runtime=%dms", took.Milliseconds()),
		"--thread", "--group_reporting", "--output-format=json"} // jobs in processes of their own would survive a killed fio
}

// fioOnHost runs fio outside every target.
func (s *stage) fioOnHost(ctx context.Context, args []string, took time.Duration) (record.Reported, *record.Failure) {
	bounded, cancel := context.WithTimeout(ctx, took+grace)
	defer cancel()
	e, err := s.options.Run(bounded, args)
	switch {
	case err != nil:
		return record.Reported{}, &fail(record.FailError, &e, "fio on the host: %v", err).Failure
	case e.Exit != 0:
		return record.Reported{}, &fail(record.FailExit, &e, "fio on the host: exit status %d", e.Exit).Failure
	}
	claim, _, err := tool.Parse(storage.Job{Tool: storage.ToolFio}, e.Output, e.Stderr)
	if err != nil {
		return record.Reported{}, &fail(record.FailWorkload, &e, "parse fio's output: %v", err).Failure
	}
	return claim, nil
}
