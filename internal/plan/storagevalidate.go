package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// What a storage measure may ask for. The JSON Schema states the same.
const (
	MaxVolumes      = 20
	MaxJobs         = 100
	MinScale        = 0.000001
	MaxScale        = 1000
	MinRuntimeLimit = 100 * time.Millisecond
	MinCeiling      = 100 * time.Millisecond
	MaxCeiling      = 10 * time.Minute
	MaxSettle       = time.Hour

	minScaleText = "0.000001" // %g has an exponent
)

// Validate says everything that is wrong with the storage measure.
func (s *Storage) Validate() error { return joined(s.complaints()) }

func (s *Storage) complaints() []complaint {
	return slices.Concat(s.plainComplaints(), s.destroysComplaints())
}

// plainComplaints are those about a plan that nobody runs yet: its devices are
// given away on the command line only.
func (s *Storage) plainComplaints() []complaint {
	targets, _ := targetsComplaints(s.Targets)
	volumes, wrong := parseVolumes(s.Volumes)
	return slices.Concat(
		targets,
		engineComplaints(s.Engines, s.Via, s.Missing),
		wrong,
		s.cacheComplaints(),
		jobsComplaints(s.Jobs),
		s.fitComplaints(volumes),
		s.scaleComplaints(),
		roundsComplaints(s.Rounds),
		s.extentComplaints(),
		limitsComplaints(s.Limits, true),
		s.rootComplaints(),
	)
}

func (s *Storage) cacheComplaints() []complaint {
	if len(s.Cache) == 0 {
		return []complaint{complain("cache", "the list is empty: write direct, buffered or both")}
	}
	return cachesComplaints("cache", s.Cache)
}

// destroysComplaints let no device be written that is not named twice, by the
// very same path: two ways to write one are how the wrong one is lost.
func (s *Storage) destroysComplaints() []complaint {
	var all []complaint
	if len(s.Destroys) > MaxVolumes {
		return []complaint{complain("i_know_this_destroys", "%d devices are too many: at most %d are allowed", len(s.Destroys), MaxVolumes)}
	}
	for i, device := range s.Destroys {
		if err := checkDevice(device); err != nil {
			all = append(all, complain("i_know_this_destroys", "%s is not a device: %v", quote(device), err).at(i))
		} else if slices.Contains(s.Destroys[:i], device) {
			all = append(all, complain("i_know_this_destroys", "%s is there twice: keep one of them", shorten(device)).at(i))
		}
	}
	for i, name := range s.Volumes {
		v, err := ParseVolume(name)
		if err == nil && v.Kind == record.VolumeDevice && !slices.Contains(s.Destroys, v.Source) {
			all = append(all, complain("volumes", "all that is on %s would be destroyed: if that is meant, name it once more on the command line by the same path, --i-know-this-destroys %s",
				v.Source, v.Source).at(i))
		}
	}
	return all
}

// jobsComplaints have the job's own field as their part.
func jobsComplaints(jobs []Job) []complaint {
	switch {
	case len(jobs) == 0:
		return []complaint{complain("jobs", "the list is empty: write at least one, such as randread")}
	case len(jobs) > MaxJobs:
		return []complaint{complain("jobs", "%d are too many: at most %d are allowed", len(jobs), MaxJobs)}
	}
	var all []complaint
	seen := map[string]bool{}
	for i := range jobs {
		j := &jobs[i]
		for _, c := range j.complaints() {
			all = append(all, complain("jobs", "%s: %s", quote(j.Name), c.Error()).at(i).of(c.field))
		}
		if seen[j.Name] && j.Name != "" {
			all = append(all, complain("jobs", "%s is there twice: give each job a name of its own", quote(j.Name)).at(i).of("name"))
		}
		seen[j.Name] = true
	}
	return all
}

// fitComplaints are about jobs and volumes that do not go together.
func (s *Storage) fitComplaints(volumes []Volume) []complaint {
	if len(volumes) == 0 || len(s.Cache) == 0 || len(s.Jobs) == 0 || len(s.Jobs) > MaxJobs {
		return nil // which has been said
	}
	var all []complaint
	runs := false
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for _, v := range volumes {
			for _, cache := range s.Cache {
				runs = runs || j.Takes(v.Kind, cache)
			}
		}
		device := slices.ContainsFunc(volumes, func(v Volume) bool { return v.Kind == record.VolumeDevice })
		if !device || (len(j.Volumes) > 0 && !slices.Contains(j.Volumes, record.VolumeDevice)) {
			continue
		}
		switch {
		case j.Tool == ToolSysbench:
			all = append(all, complain("jobs", "%s: sysbench works on files and not on a device: write the kinds of volume that it is for, such as volumes: [rootfs, bind]", quote(j.Name)).at(i).of("volumes"))
		case j.Files > 1:
			all = append(all, complain("jobs", "%s: a device holds no %d files: write the kinds of volume that it is for, such as volumes: [rootfs, bind]", quote(j.Name), j.Files).at(i).of("volumes"))
		}
	}
	if !runs {
		all = append(all, complain("jobs", "none of them is for these volumes (%s) and caches (%s): change the volumes or caches of the jobs or of the measure",
			shorten(strings.Join(s.Volumes, ", ")), shorten(strings.Join(s.Cache, ", "))))
	}
	return all
}

// scaleComplaints try it, once the jobs are right as they are.
func (s *Storage) scaleComplaints() []complaint {
	if !validScale(s.Scale) {
		return []complaint{complain("scale", "%g is not a scale: write one from %s to %d, such as 0.01", s.Scale, minScaleText, MaxScale)}
	}
	if len(jobsComplaints(s.Jobs)) > 0 {
		return nil
	}
	var all []complaint
	for i := range s.Jobs {
		if _, err := s.Jobs[i].resolved(s.Scale); err != nil {
			all = append(all, complain("jobs", "%s: %v", quote(s.Jobs[i].Name), err).at(i))
		}
	}
	return all
}

func (s *Storage) extentComplaints() []complaint {
	var all []complaint
	if s.RuntimeLimit < MinRuntimeLimit || s.RuntimeLimit > MaxRuntime {
		all = append(all, complain("runtime_limit", "%v is no time to measure in: from %v to %v are allowed, such as 60s", s.RuntimeLimit, MinRuntimeLimit, formatDuration(MaxRuntime)))
	}
	if s.Ceiling != 0 && (s.Ceiling < MinCeiling || s.Ceiling > MaxCeiling) {
		all = append(all, complain("ceiling", "%v is no time to measure a device in: from %v to %v are allowed, such as 2s, and 0s for no measurement", s.Ceiling, MinCeiling, formatDuration(MaxCeiling)))
	}
	if s.Settle < 0 || s.Settle > MaxSettle {
		all = append(all, complain("settle", "%v is not from 0s to %v: write 0s not to wait, or more, such as 3s", s.Settle, formatDuration(MaxSettle)))
	}
	if s.Drop != DropNode && s.Drop != DropFiles {
		all = append(all, complain("drop", "%s is not known: write node or files", quote(string(s.Drop))))
	}
	return append(all, timesComplaints(s.Budget, s.Timeout)...)
}

func (s *Storage) rootComplaints() []complaint {
	var all []complaint
	if len(s.Root) > maxSource || strings.ContainsRune(s.Root, 0) {
		all = append(all, complain("root", "%s is not a path", quote(s.Root)))
	}
	if len(s.Programs) > 0 && s.Root == "" {
		all = append(all, complain("programs", "they are paths in a root file system, and there is none: write root, the path of a folder"))
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Programs)) {
		program := s.Programs[tool]
		switch {
		case !slices.Contains([]string{ToolFio, ToolDD, ToolSysbench}, tool):
			all = append(all, complain("programs", "%s is not a tool: write fio, dd or sysbench", quote(tool)))
		case !strings.HasPrefix(program, "/"), path.Clean(program) != program, len(program) > maxSource, strings.ContainsRune(program, 0):
			all = append(all, complain("programs", "%s: %s is not the path of a program: write it from the root, such as /usr/bin/%s", tool, quote(program), tool))
		}
	}
	return all
}

// Resolved are the volumes, parsed, and the jobs as they are run: scaled, and
// with every field that was left out filled in. A job's Size then is that of all
// its files, FileSize that of each, and of dd Count is there too; sizes are
// multiples of BS. Jobs with Options have nothing but those.
func (s *Storage) Resolved() ([]Volume, []Job, error) {
	volumes, found := parseVolumes(s.Volumes)
	found = slices.Concat(found, jobsComplaints(s.Jobs), s.scaleComplaints())
	if len(found) > 0 {
		return nil, nil, found[0]
	}
	var jobs []Job
	for i := range s.Jobs {
		j, err := s.Jobs[i].resolved(s.Scale)
		if err != nil {
			return nil, nil, fmt.Errorf("jobs: %s: %w", quote(s.Jobs[i].Name), err)
		}
		jobs = append(jobs, j)
	}
	return volumes, jobs, nil
}
