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

// checkJobs refuses jobs that no tool can be told to do, wherever they come from:
// a plan may hold the options of a job file.
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

// checkVolumes refuses a device that cannot be written over, and a folder that is not
// there, before anything runs: it is most likely not the one that was meant. It is
// looked at once more when its turn comes.
func checkVolumes(volumes []storage.Volume) error {
	for _, v := range volumes {
		switch {
		case v.Kind == record.VolumeDevice:
			if err := volume.Free(v.Source); err != nil {
				return &notHere{fmt.Errorf("--volume %s: %w\n%s", v.Name, err, volume.Advice(err))}
			}
		case v.Kind == record.VolumeBind && v.Source != "":
			if info, err := os.Stat(v.Source); err != nil {
				return &notHere{fmt.Errorf("--volume %s: %w; name a folder that is there", v.Name, err)}
			} else if !info.IsDir() {
				return &notHere{fmt.Errorf("--volume %s: it is no folder; name one on the disk that is meant", v.Name)}
			}
		}
	}
	return nil
}

// placeOf is where a job would have its files inside a sandbox.
func placeOf(p *storage.Options, j *storage.Job) tool.Place {
	return tool.Place{Program: "/" + j.Tool, Dir: subject.VolumePath, Limit: p.RuntimeLimit, In: probe.InArgs}
}
