package cli

import (
	"context"
	"fmt"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

func newStorage(s Streams) *cobra.Command {
	storage.ReadJobFile = readJobFile
	p := storage.Defaults()
	set := option.Of(&p)
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
			p.Targets = args
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			return weighStorage(c.Context(), s, p, out)
		},
	}
	set.AddFlags(c.Flags())
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
func weighStorage(ctx context.Context, s Streams, p storage.Options, out outputFlags) error {
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
			if targets, skipped, err = choose(ctx, s, selection{Whom: &p.Whom}, out.quiet); err == nil {
				meter, err = snapshot.New()
			}
			return targets, skipped, err
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			options.Plan, options.Options, options.Targets, options.Meter = p, o.options, o.targets, meter
			return outcome(o.storage(ctx, &options))
		},
	})
}

// storage makes what the run needs on this machine, and performs it.
func (o *session) storage(ctx context.Context, options *storagerun.Options) (*record.Record, *storage.Judgement, error) {
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
	options.Prepare = func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
		dir, _, err := o.run.Dirs("-volume-" + v.Kind)
		if err != nil {
			return nil, err
		}
		return volume.Prepare(ctx, v, volume.Asked{RunID: o.run.ID, Dir: dir, Bytes: bytes, Destroys: options.Plan.Destroys})
	}
	return storagerun.Run(ctx, *options)
}

// maxJobFile is what a job file can have at most.
const maxJobFile = 1 << 20

func readJobFile(path string) (storage.Job, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxJobFile) {
		err = fmt.Errorf("%s is no file of up to 1 MiB", path)
	}
	if err != nil {
		return storage.Job{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return storage.Job{}, err
	}
	sections, err := tool.ParseJobFile(string(text))
	if err != nil {
		return storage.Job{}, fmt.Errorf("%s: %w", path, err)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return storage.Job{Name: term.Clean(name), Tool: storage.ToolFio, Options: sections}, nil
}
