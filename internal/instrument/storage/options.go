package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Limits of the options.
const (
	maxVolumes      = 20
	maxJobs         = 100
	minRuntimeLimit = 100 * time.Millisecond
	minCeiling      = 100 * time.Millisecond
	maxCeiling      = 10 * time.Minute
	maxSettle       = time.Hour
)

// Options are the options of a storage run.
type Options struct {
	Title string
	terms.Whom
	Volumes      []string // see ParseVolume
	Cache        []string // record.CacheDirect, record.CacheBuffered
	Jobs         []Job
	Scale        float64 // factor for all sizes, counts and times of the jobs; 0 means 1
	Rounds       int
	RuntimeLimit time.Duration // of one job: fio and sysbench stop then, other tools fail
	Ceiling      time.Duration // duration of each of the four measurements of a device; 0 means none
	Settle       time.Duration // maximum wait until a device is idle
	Drop         Drop
	Budget       time.Duration
	Timeout      time.Duration // of every other step on a target
	Seed         uint64
	Limits       setting.Limits // of every container; none by default
	// Destroys are the devices that may be overwritten. They are part of records, but
	// not of plan files: only the command line can set them.
	Destroys []string
	Baseline string // the target that ratios refer to; "" means see [Judgement.bases]
	figure.Comparing
}

// Drop selects the caches that are dropped before a job.
type Drop string

// Scopes of Drop.
const (
	DropNode  Drop = "node"  // the host's page cache (/proc/sys/vm/drop_caches), and that of the job's files in the sandbox
	DropFiles Drop = "files" // only that of the job's files: other programs keep theirs
)

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Whom: terms.Everyone, Volumes: []string{record.VolumeBind}, Cache: []string{record.CacheDirect},
		Jobs:  timed(DefaultJobs(quickJobs, []int64{defaultBlock}, ToolFio, quickFile, defaultNumJobs), quickRun),
		Scale: 1, RuntimeLimit: time.Minute, Ceiling: time.Second, Settle: 3 * time.Second, Drop: DropNode,
		Budget: 4 * time.Hour, Timeout: 10 * time.Minute,
	}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhomOr(s, "a volume")
	option.List(s, &o.Volumes, "volumes", "location of the files: rootfs, bind, bind=/FOLDER, tmpfs, nfs=server:/path, device=/dev/NAME", option.Flag("volume"),
		option.Some("write at least one, such as rootfs"), option.AtMost(maxVolumes))
	option.Var(s, &o.Cache, "cache", "direct (O_DIRECT), buffered, or both", cacheKind, option.Some("write direct, buffered or both"),
		option.Choices(caches...), option.Once("each is measured once"))
	option.Var(s, &o.Jobs, "jobs", "jobs, each by its name (randread, randread 4k) or with all its fields", option.ListOf(jobKind),
		option.Flag("jobs"), option.NoFlag, option.Some("write at least one, such as randread"), option.AtMost(maxJobs))
	new(jobFlags).declare(s, o)
	option.Var(s, &o.Scale, "scale", terms.ScaleHelp, terms.Scale, option.OmitEmpty, option.Must(terms.CheckScale))
	terms.Baseline(s, &o.Baseline, "the host, where it has figures, or else the first runtime that shares its kernel")
	terms.Comparing(s, &o.Comparing)
	option.Int(s, &o.Rounds, "rounds", "rounds, each running every job once on every target (default: as many as the compared cells need, at least 6)",
		option.Bounds(1, terms.MaxRounds, "a number of rounds"), option.OmitEmpty, option.NoDefault)
	option.Time(s, &o.RuntimeLimit, "runtime_limit", "stop a job after this time; dd cannot stop and fails; sysbench jobs run for all of it (default for sysbench: "+sysbenchRuns.String()+")",
		option.Bounds(minRuntimeLimit, MaxRuntime, "a time to measure in", ", such as 60s"))
	option.Time(s, &o.Ceiling, "ceiling", "duration of each of the four measurements of the device on the host, before and after the rounds; 0s for none",
		option.OrZero, option.Bounds(minCeiling, maxCeiling, "a time to measure a device in", ", such as 2s, and 0s for no measurement"))
	option.Time(s, &o.Settle, "settle", "maximum wait before a job until the device is idle; shorter after unsuccessful waits", option.Bounds(0, maxSettle, "a time to wait", ", such as 3s"))
	option.Text(s, &o.Drop, "drop", "caches to drop before a job: node drops the page cache of the whole node, which affects other programs; files only that of the job's files", option.Choices("node", "files"))
	terms.Budget(s, &o.Budget, "job")
	terms.Timeout(s, &o.Timeout, "for laying out files, and for starting a sandbox")
	terms.Seed(s, &o.Seed, "targets")
	terms.Limits(s, &o.Limits, true, "none")
	// Plans are shared, and /dev/vdb on another machine is a different disk.
	option.Var(s, &o.Destroys, "i_know_this_destroys", "a device of --volume whose content may be overwritten, by its path", option.Repeated(option.ListOf(option.TextOf[string]())), option.OmitEmpty,
		option.AtMost(maxVolumes), option.Must(checkDestroyed), option.Once("keep one of them"),
		option.Refused("a plan cannot allow overwriting a device: remove the line, and name the device on the command line, --i-know-this-destroys /dev/NAME"))
	s.Before(func(context.Context) error {
		if s.Given("scale") && o.Scale == 0 {
			return terms.NoScale()
		}
		return nil
	})
}

var caches = []string{record.CacheDirect, record.CacheBuffered}

// cacheKind is a list; the command line also accepts "both".
var cacheKind = func() option.Kind[[]string] {
	k := option.ListOf(option.TextOf[string]())
	list := k.Parse
	k.Parse = func(s string) ([]string, error) {
		if strings.TrimSpace(s) == "both" {
			return slices.Clone(caches), nil
		}
		return list(s)
	}
	return k
}()

// Wrong returns errors that involve several options.
func (o *Options) Wrong() option.FieldErrors {
	all, names := o.CheckWhom()
	volumes, _, wrong := o.resolve()
	return slices.Concat(all, terms.CheckNamed("baseline", o.Baseline, names), wrong, o.fitWrong(volumes))
}

// WrongToRun requires that a device is named twice, by the same path. With two spellings
// the wrong device could be overwritten. A plan that is not run is exempt: only the
// command line allows overwriting.
func (o *Options) WrongToRun() option.FieldErrors {
	var all option.FieldErrors
	for i, name := range o.Volumes {
		v, err := ParseVolume(name)
		if err == nil && v.Kind == record.VolumeDevice && !slices.Contains(o.Destroys, v.Source) {
			all = append(all, option.Wrongf("volumes", "everything on %s would be destroyed: to allow it, repeat the same path on the command line, --i-know-this-destroys %s",
				v.Source, v.Source).At(i))
		}
	}
	return all
}

// jobsWrong returns the errors of all jobs, each with the job's field.
func jobsWrong(jobs []Job) option.FieldErrors {
	var all option.FieldErrors
	seen := map[string]bool{}
	for i := range jobs[:min(len(jobs), maxJobs)] {
		j := &jobs[i]
		for _, e := range option.Mistakes(j) {
			all = append(all, e.In("jobs", i, j.Name))
		}
		if seen[j.Name] && j.Name != "" {
			all = append(all, option.Wrongf("jobs", "%s is there twice: give each job a name of its own", option.Quote(j.Name)).At(i).Of("name"))
		}
		seen[j.Name] = true
	}
	return all
}

// fitWrong returns errors about jobs and volumes that do not fit together.
func (o *Options) fitWrong(volumes []Volume) option.FieldErrors {
	if len(volumes) == 0 || len(o.Cache) == 0 || len(o.Jobs) == 0 || len(o.Jobs) > maxJobs {
		return nil // reported already
	}
	var all option.FieldErrors
	runs := slices.ContainsFunc(volumes, func(v Volume) bool { return o.Pairs(o.Jobs, v.Kind) != nil })
	device := slices.ContainsFunc(volumes, func(v Volume) bool { return v.Kind == record.VolumeDevice })
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if !device || (len(j.Volumes) > 0 && !slices.Contains(j.Volumes, record.VolumeDevice)) {
			continue
		}
		const kinds = "restrict its volumes, such as volumes: [rootfs, bind]"
		switch {
		case j.Tool == ToolSysbench:
			all = append(all, option.Wrongf("jobs", "%s: sysbench works on files and not on a device: %s", option.Quote(j.Name), kinds).At(i).Of("volumes"))
		case j.Files > 1:
			all = append(all, option.Wrongf("jobs", "%s: a device cannot contain %d files: %s", option.Quote(j.Name), j.Files, kinds).At(i).Of("volumes"))
		}
	}
	if !runs {
		all = append(all, option.Wrongf("jobs", "no job matches these volumes (%s) and caches (%s): change the volumes or caches of the jobs or of the measure",
			option.Shorten(strings.Join(o.Volumes, ", ")), option.Shorten(strings.Join(o.Cache, ", "))))
	}
	return all
}

// Resolved returns the parsed volumes, and the jobs scaled and with all defaults. Size is
// then the total of all files, FileSize the size of each, and Count is set for dd. Sizes
// are multiples of BS. Jobs with Options are left unchanged.
func (o *Options) Resolved() ([]Volume, []Job, error) {
	volumes, jobs, wrong := o.resolve()
	switch {
	case len(wrong) > 0:
		return nil, nil, wrong[0]
	case len(jobs) == 0:
		return nil, nil, errors.Join(option.Check(o), errors.New("cannot determine the jobs"))
	}
	return volumes, jobs, nil
}

// resolve returns the valid volumes, the jobs if all are valid, and the errors.
func (o *Options) resolve() (volumes []Volume, jobs []Job, all option.FieldErrors) {
	volumes, all = parseVolumes(o.Volumes)
	wrong := jobsWrong(o.Jobs)
	if all = append(all, wrong...); len(wrong) > 0 || len(o.Jobs) > maxJobs || !terms.ValidScale(o.Scale) { // reported with the options themselves
		return volumes, nil, all
	}
	for i := range o.Jobs {
		j, err := o.Jobs[i].resolved(o.Scale)
		if err != nil {
			all = append(all, option.Wrongf("jobs", "%s: %v", option.Quote(o.Jobs[i].Name), err).At(i))
		}
		jobs = append(jobs, j)
	}
	return volumes, jobs, all
}

// MarshalJSON writes the form of a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON reads the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
