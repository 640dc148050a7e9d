package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tare-bench/tare/internal/core/run"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/report"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// storageFlags say what to weigh and how.
type storageFlags struct {
	volumes  string
	cache    string
	jobs     string
	jobFile  string
	size     string
	bs       string
	numJobs  int
	tool     string
	scale    string
	limit    string
	rounds   int
	runtime  time.Duration
	ceiling  time.Duration
	settle   time.Duration
	drop     string
	budget   time.Duration
	timeout  time.Duration
	seed     uint64
	missing  string
	destroys []string
	root     string
	programs []string
	engines  engineFlags
}

func (f *storageFlags) add(set *pflag.FlagSet) {
	d := plan.DefaultsOfStorage()
	f.addScale(set)
	set.StringVar(&f.cache, "cache", strings.Join(d.Cache, ","), "direct (O_DIRECT), buffered, or both")
	set.StringVar(&f.jobs, "jobs", "randread,read,randwrite,write", "jobs: randread, read, randwrite, write, rndrw; plan for those of the published report")
	set.StringVar(&f.jobFile, "jobfile", "", "a job file of fio's, instead of --jobs")
	set.StringVar(&f.size, "size", "1G", "of a job's files, all together")
	set.StringVar(&f.bs, "bs", "512k", "block sizes: 512k,4k makes each job one of either (default with dd 4k, with sysbench 16k)")
	set.IntVar(&f.numJobs, "numjobs", 8, "threads, each doing the whole job on the same file; dd has one")
	set.StringVar(&f.tool, "tool", plan.ToolFio, "fio, dd or sysbench")
	set.StringVar(&f.limit, "limit", "", "limits of every container: cpu=1,memory=1Gi,pids=100 (default: none)")
	set.IntVar(&f.rounds, "rounds", d.Rounds, "rounds, each running every job once on every target")
	set.DurationVar(&f.runtime, "runtime-limit", d.RuntimeLimit, "stop a job after this time; dd cannot stop, and has failed then; sysbench's jobs run for all of it (default of sysbench: "+sysbenchRuns.String()+")")
	set.DurationVar(&f.ceiling, "ceiling", d.Ceiling, "how long each of four measurements of the device on the host takes, before and after; 0 for none")
	set.DurationVar(&f.settle, "settle", d.Settle, "at most, until the device is at rest before a job")
	set.StringVar(&f.drop, "drop", string(d.Drop), "caches before a job: node drops all page cache of the node, which its other programs notice; files only that of the job's files")
	set.DurationVar(&f.budget, "budget", d.Budget, "begin no new job after this time")
	set.DurationVar(&f.timeout, "timeout", d.Timeout, "for laying out files, and for starting a sandbox")
	set.Uint64Var(&f.seed, "seed", 0, "seed of the order of targets (default: random, and recorded)")
	set.StringVar(&f.missing, "missing", string(d.Missing), "what to do about a named target or a volume that cannot be had here: fail, or skip it")
	set.StringVar(&f.root, "root", "", "a folder with a root file system that containers have, for tools of its own, see --program")
	set.StringArrayVar(&f.programs, "program", nil, "run this program of --root instead of the host's: fio=/usr/local/bin/fio")
	f.engines.add(set)
}

// addScale adds the flags that tare run has too.
func (f *storageFlags) addScale(set *pflag.FlagSet) {
	d := plan.DefaultsOfStorage()
	set.StringVar(&f.volumes, "volume", strings.Join(d.Volumes, ","), "where the files lie: rootfs, bind, tmpfs, nfs=server:/path, device=/dev/NAME")
	set.StringVar(&f.scale, "scale", "1", "multiply all sizes, counts and times of storage jobs, and the times of loads on BPF programs: 0.01 for a short trial")
	set.StringArrayVar(&f.destroys, "i-know-this-destroys", nil, "a device of --volume whose content may be overwritten, by its path")
}

// apply puts the flags that were given into a plan.
func (f *storageFlags) apply(ctx context.Context, set *pflag.FlagSet, s *plan.Storage, add bool) error {
	var err error
	if set.Changed("volume") {
		if s.Volumes, err = plan.ParseVolumes(f.volumes); err != nil {
			return fmt.Errorf("--volume: %s", bare(err))
		}
	}
	if set.Changed("cache") {
		if s.Cache, err = plan.ParseCaches(f.cache); err != nil {
			return fmt.Errorf("--cache: %s", bare(err))
		}
	}
	if set.Changed("scale") {
		if s.Scale, err = plan.ParseScale(f.scale); err != nil {
			return fmt.Errorf("--scale: %s", bare(err))
		}
		if s.Scale == 0 {
			return errors.New("--scale: 0 leaves nothing to do: write one such as 0.01, or leave it out")
		}
	}
	if err := f.applyJobs(set, s); err != nil {
		return err
	}
	if set.Changed("limit") {
		if s.Limits, err = plan.ParseLimit(f.limit); err != nil {
			return fmt.Errorf("--limit: %s", bare(err))
		}
		if none := noLimit(f.limit, s.Limits); none != "" {
			return fmt.Errorf("--limit: %s is none: leave it out, or write more", none)
		}
	}
	if err := f.applyPrograms(set, s); err != nil {
		return err
	}
	f.applyPlain(set, s)
	if err := f.engines.apply(ctx, set, storageSelection(s), add); err != nil {
		return err
	}
	return flagged(s.Validate())
}

// applyPlain takes what needs no parsing.
func (f *storageFlags) applyPlain(set *pflag.FlagSet, s *plan.Storage) {
	for _, d := range []struct {
		name     string
		to       *time.Duration
		duration time.Duration
	}{{"runtime-limit", &s.RuntimeLimit, f.runtime}, {"ceiling", &s.Ceiling, f.ceiling}, {"settle", &s.Settle, f.settle}, {"budget", &s.Budget, f.budget}, {"timeout", &s.Timeout, f.timeout}} {
		if set.Changed(d.name) {
			*d.to = d.duration
		}
	}
	if set.Changed("rounds") {
		s.Rounds = f.rounds
	}
	if set.Changed("seed") {
		s.Seed = f.seed
	}
	if set.Changed("missing") {
		s.Missing = plan.Missing(f.missing)
	}
	if set.Changed("drop") {
		s.Drop = plan.Drop(f.drop)
	}
	if set.Changed("i-know-this-destroys") {
		s.Destroys = f.destroys
	}
}

// applyJobs makes jobs of the flags for them, if one of those was given.
func (f *storageFlags) applyJobs(set *pflag.FlagSet, s *plan.Storage) error {
	asked := slices.ContainsFunc([]string{"jobs", "size", "bs", "numjobs", "tool"}, set.Changed)
	if set.Changed("jobfile") {
		if asked {
			return errors.New("--jobfile: the file says what the jobs are; leave out --jobs, --size, --bs, --numjobs and --tool")
		}
		job, err := readJobFile(f.jobFile)
		if err != nil {
			return fmt.Errorf("--jobfile: %w", err)
		}
		s.Jobs = []plan.Job{job}
		return nil
	}
	if !asked {
		return nil
	}
	switch {
	case defaultJobs[f.tool] == "":
		return fmt.Errorf("--tool: unknown tool %q: the tools are fio, dd and sysbench", f.tool)
	case set.Changed("numjobs") && f.numJobs < 1:
		return fmt.Errorf("--numjobs: %d threads do nothing: write 1 or more", f.numJobs)
	case set.Changed("numjobs") && f.numJobs > 1 && f.tool == plan.ToolDD:
		return fmt.Errorf("--numjobs: dd has one thread, and not %d: leave it out, or use --tool fio", f.numJobs)
	}
	names, sizes := f.jobs, f.bs
	if !set.Changed("jobs") || f.jobs == "plan" {
		names = defaultJobs[f.tool]
	}
	if !set.Changed("bs") {
		sizes = defaultBlocks[f.tool]
	}
	size, err := plan.ParseSize(f.size)
	if err != nil {
		return fmt.Errorf("--size: %s", bare(err))
	}
	bs, err := plan.ParseBlockSizes(sizes)
	if err != nil {
		return fmt.Errorf("--bs: %s", bare(err))
	}
	if s.Jobs, err = plan.ParseJobs(names, bs, f.tool, size, f.numJobs); err != nil {
		return fmt.Errorf("--jobs: %s", bare(err))
	}
	if f.tool == plan.ToolSysbench && !set.Changed("runtime-limit") {
		for i := range s.Jobs { // which have no requests, and so no end of their own
			s.Jobs[i].Runtime = sysbenchRuns
		}
	}
	return nil
}

// sysbenchRuns is how long its jobs run that nothing else ends.
const sysbenchRuns = 10 * time.Second

// What the tools do when nothing else is said: the jobs and blocks of the
// published report.
var (
	defaultJobs   = map[string]string{plan.ToolFio: "randread,read,randwrite,write", plan.ToolDD: "write,read", plan.ToolSysbench: "rndrw"}
	defaultBlocks = map[string]string{plan.ToolFio: "512k", plan.ToolDD: "4k", plan.ToolSysbench: "16k"}
)

// maxJobFile is what a job file can have at most.
const maxJobFile = 1 << 20

func readJobFile(path string) (plan.Job, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxJobFile) {
		err = fmt.Errorf("%s is no file of up to 1 MiB", path)
	}
	if err != nil {
		return plan.Job{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return plan.Job{}, err
	}
	sections, err := tool.ParseJobFile(string(text))
	if err != nil {
		return plan.Job{}, fmt.Errorf("%s: %w", path, err)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return plan.Job{Name: term.Clean(name), Tool: plan.ToolFio, Options: sections}, nil
}

func (f *storageFlags) applyPrograms(set *pflag.FlagSet, s *plan.Storage) error {
	if set.Changed("root") {
		s.Root = f.root
	}
	if !set.Changed("program") {
		return nil
	}
	s.Programs = map[string]string{}
	for _, p := range f.programs {
		name, path, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("--program: %q: write TOOL=PATH, such as fio=/usr/local/bin/fio", p)
		}
		s.Programs[name] = path
	}
	return nil
}

func storageSelection(s *plan.Storage) selection {
	return selection{&s.Targets, s.Missing, &s.Via, &s.Engines, nil}
}

func newStorage(s Streams) *cobra.Command {
	var flags storageFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "storage [TARGET...]",
		Short: "Weigh what I/O a runtime loses, and tell a cache from a disk",
		Long: `Run fio, dd or sysbench on each target, on its root file system, on a folder of
the host, in memory, on an NFS server or on a block device; past the page cache
or through it. Every job runs in a sandbox of its own, on files that the same
writer laid out, after caches were dropped and the device has come to rest. The
tool is carried into the containers from this machine, so that all sides run the
same version.

Beside what the tool says stands what the device did meanwhile, and a verdict on
every figure: device, host cache, guest cache, not direct, too short, throttled
or noisy. See docs/storage.md for the rules.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle. Files are laid out in folders of tare's own, and removed. A
device is overwritten only if it is named by --i-know-this-destroys too, and
never one that is in use.`,
		Example: `  tare storage host runc --volume bind --size 8M --jobs randread,write --rounds 1 --ceiling 100ms
  tare storage runc --volume bind,tmpfs --cache direct,buffered --jobs read --bs 4k --size 4M --rounds 1 --ceiling 0 --drop files
  tare storage host runc --volume rootfs --tool dd --jobs write --size 4M --rounds 1 --ceiling 0 --settle 1s
  tare storage runc --volume bind --jobfile my.fio --rounds 1 --ceiling 0`,
		RunE: func(c *cobra.Command, args []string) error {
			p := plan.DefaultsOfStorage()
			p.Targets = args
			if err := flags.apply(c.Context(), c.Flags(), &p, true); err != nil {
				return err
			}
			return weighStorage(c.Context(), s, p, out)
		},
	}
	flags.add(c.Flags())
	out.addRecord(c.Flags())
	out.addStorageForm(c.Flags())
	return c
}

// addStorageForm adds the flags of reports of storage.
func (f *outputFlags) addStorageForm(set *pflag.FlagSet) {
	set.StringVar(&f.format, "format", "text", "text, json, md or csv")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "show everything: why each verdict was given, every interval, what was laid out, and where imported figures stood")
}

// weighStorage performs a storage plan.
func weighStorage(ctx context.Context, s Streams, p plan.Storage, out outputFlags) error {
	var options storagerun.Options
	var meter *snapshot.Reader
	defer func() {
		if meter != nil {
			meter.Close()
		}
	}()
	return weigh(ctx, s, &out, weighing{
		experiment: "storage", engines: p.Engines,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			if err := checkDevices(&p); err != nil {
				return nil, nil, err
			}
			if err := checkJobs(&p); err != nil {
				return nil, nil, err
			}
			if err := carryTools(ctx, &p, &options); err != nil {
				return nil, nil, err
			}
			if targets, skipped, err = choose(ctx, s, storageSelection(&p), out.quiet); err == nil {
				meter, err = snapshot.New()
			}
			return targets, skipped, err
		},
		run: func(o *session) (*record.Record, run.Judgement, error) {
			options.Plan, options.Options, options.Targets, options.Meter = p, o.options, o.targets, meter
			return outcome(o.storage(ctx, &options))
		},
	})
}

// storage makes what the run needs on this machine, and performs it.
func (o *session) storage(ctx context.Context, options *storagerun.Options) (*record.Record, *judge.Storage, error) {
	dir, _, err := o.run.Dirs("-host")
	if err == nil {
		err = probe.Install(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	options.Run = func(ctx context.Context, args []string) (subject.Executed, error) {
		args = slices.Clone(args)
		if args[0] == probe.Name {
			args[0] = dir + probe.Name
		}
		return child.Run(ctx, child.Command{Args: args, Env: lane.Environment(nil)})
	}
	options.Prepare = func(ctx context.Context, v plan.Volume, bytes int64) (*volume.Volume, error) {
		dir, _, err := o.run.Dirs("-volume-" + v.Kind)
		if err != nil {
			return nil, err
		}
		return volume.Prepare(ctx, v, volume.Asked{RunID: o.run.ID, Dir: dir, Bytes: bytes, Destroys: options.Plan.Destroys})
	}
	return storagerun.Run(ctx, *options)
}

// showStorage prints the report of a record and returns the exit code it calls
// for.
func showStorage(s Streams, format report.Format, rec *record.Record, out outputFlags) (int, error) {
	j, err := judge.StorageOf(rec)
	if err != nil {
		return 0, err
	}
	if err := report.Storage(s.Out, format, rec, j, reportOptions(s, out)); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	return codeOf(j.Failed, j.Findings), nil
}
