package cli

import (
	"fmt"
	"os"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// checkJobs rejects jobs that no tool can run. A plan may contain the options of a job
// file.
func checkJobs(p *storage.Options, jobs []storage.Job) error {
	for _, j := range jobs {
		at := placeOf(p, &j)
		if _, err := tool.Files(j, at); err != nil {
			return fmt.Errorf("--jobs: %w", err)
		}
		if _, err := tool.Command(j, at); err != nil {
			return fmt.Errorf("--jobs: %w", err)
		}
	}
	return nil
}

// checkVolumes rejects devices that cannot be overwritten and missing folders, which are
// most likely typos. Both are checked again before they are used.
func checkVolumes(volumes []storage.Volume) error {
	for _, v := range volumes {
		switch {
		case v.Kind == record.VolumeDevice:
			if err := volume.Free(v.Source); err != nil {
				return &notHere{fmt.Errorf("--volume %s: %w\n%s", v.Name, err, volume.Advice(err))}
			}
		case v.Kind == record.VolumeBind && v.Source != "":
			if info, err := os.Stat(v.Source); err != nil {
				return &notHere{fmt.Errorf("--volume %s: %w; name an existing folder", v.Name, err)}
			} else if !info.IsDir() {
				return &notHere{fmt.Errorf("--volume %s: not a folder; name a folder on the disk to measure", v.Name)}
			}
		}
	}
	return nil
}

// placeOf returns the location of a job's files inside a sandbox.
func placeOf(p *storage.Options, j *storage.Job) tool.Place {
	return tool.Place{Program: "/" + j.Tool, Dir: subject.VolumePath, Limit: p.RuntimeLimit, In: probe.InArgs}
}
