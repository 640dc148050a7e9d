package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/workspace"
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

// tellRoom says before anything runs which jobs have files that the host's own folders
// cannot hold: their cells will fail, when their turn comes.
func (s *app) tellRoom(p *storage.Options, volumes []storage.Volume, jobs []storage.Job) {
	for _, v := range volumes {
		dir := cmp.Or(v.Source, workspace.DefaultRoots().Data)
		for _, err := os.Stat(dir); err != nil && filepath.Dir(dir) != dir; _, err = os.Stat(dir) {
			dir = filepath.Dir(dir) // below which it will be made
		}
		free, err := freeBelow(dir)
		if v.Kind != record.VolumeBind || err != nil { // or where it fails is where it is needed
			continue
		}
		for _, j := range jobs {
			need, err := storagerun.Needs(j, placeOf(p, &j))
			if err == nil && float64(need) > storagerun.MaxOfDisk*float64(free) {
				fmt.Fprintf(s.Err, "tare: the files of job %s are %s, and on %s %s are free, of which 90 %% may be taken: on volume %s its cells will fail; use a smaller --size or --scale, or bind=/FOLDER on a larger disk\n",
					j.Name, page.Size(float64(need)), dir, page.Size(float64(free)), v.Name)
			}
		}
	}
}

// placeOf is where a job would have its files inside a sandbox.
func placeOf(p *storage.Options, j *storage.Job) tool.Place {
	return tool.Place{Program: "/" + j.Tool, Dir: subject.VolumePath, Limit: p.RuntimeLimit, In: probe.InArgs}
}
