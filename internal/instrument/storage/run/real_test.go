package run_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

const mib = 1 << 20

// Run the real tools: the recorded results match their output.
func TestRecordMatchesTheToolsOutput(t *testing.T) {
	sections, err := storage.ParseJobFile("; of two kinds\n[global]\nsize=4m\nbs=16k\n[random reads]\nrw=randread\nnumjobs=2\n[writes]\nrw=write\nbs=128k\n")
	must.OK(t, err)
	rootfs, both := []string{record.VolumeRootfs}, []string{record.VolumeRootfs, record.VolumeBind}
	for name, c := range map[string]struct {
		tool    string
		volumes []string
		cells   int
		jobs    []storage.Job
	}{
		"fio": {storage.ToolFio, both, 2*2 + 2 + 2, []storage.Job{
			{Name: "read", RW: "read", BS: 512 << 10, Size: 8 * mib, NumJobs: 2, Volumes: []string{record.VolumeBind}},
			{Name: "rndrw", RW: "randrw", BS: 32 << 10, Size: 8 * mib, Engine: "libaio", IODepth: 4},
			{Name: "write", RW: "write", BS: 64 << 10, Size: 8 * mib, Files: 4, EndFsync: true, Volumes: rootfs},
		}},
		"fio with a job file": {storage.ToolFio, both, 2 * 2, []storage.Job{{Name: "my", Options: sections}}},
		"dd": {storage.ToolDD, rootfs, 2 * 2, []storage.Job{
			{Name: "write", RW: "write", BS: 4096, Count: 2048}, {Name: "read", RW: "read", BS: mib, Count: 8},
		}},
		"sysbench": {storage.ToolSysbench, rootfs, 2 * 2, []storage.Job{
			{Name: "rndrd", RW: "randread", BS: 16 << 10, Size: 8 * mib, Files: 2, NumJobs: 2, Requests: 400},
			{Name: "rndrw", RW: "randrw", BS: 16 << 10, Size: 8 * mib, Files: 2, NumJobs: 2, Requests: 400},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			need.Tool(t, c.tool)
			heard := weigh(t, c.tool, c.jobs, c.volumes...)
			check.Equal(t, "cells", len(heard), c.cells)
			for _, h := range heard {
				job := c.jobs[slices.IndexFunc(c.jobs, func(j storage.Job) bool { return j.Name == h.cell.Job })]
				said, version, err := tool.Parse(job, h.said.Output, h.said.Stderr)
				check.That(t, err == nil && said == *h.cell.Reported && (version == "" || version == h.cell.Version),
					"%s: recorded %+v of %q; the output of %q has %+v, %v", h.name, h.cell.Reported, h.cell.Version, version, said, err)
				check.That(t, len(job.Options) == 0 || said.Read.Bytes == 2*4*mib && said.Write.Bytes == 4*mib,
					"%s: %d bytes were read, %d written", h.name, said.Read.Bytes, said.Write.Bytes)
			}
		})
	}
}

// heard is a cell of the record with the verbatim output of its tool.
type heard struct {
	name string
	cell record.Cell
	said subject.Executed
}
