package storage

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument describes this instrument to the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "The I/O performance that a runtime costs.",
	Short: "Measure the I/O performance that a runtime costs, and detect caches",
	Long: `Run fio, dd or sysbench on each target: on its root file system, on a directory of
the host, in memory, on an NFS server or on a block device. I/O is direct or goes
through the page cache. Every job runs in its own sandbox. Its files are laid out by
the same writer, caches are dropped, and the device is idle before the job starts.
The tool is copied from this machine into the containers, so that all sides run the
same version.

The report compares the tool's figures with the device's I/O in the same time. Every
figure has a verdict: device, host cache, guest cache, not direct, contradicted, too short,
throttled or noisy. See docs/storage.md for the rules.

Without flags two jobs run with direct I/O on a directory of the host, 1.5 s each,
in as many rounds as their comparison needs. For two targets on a quiet machine this
takes about a minute. --volume rootfs,bind,tmpfs, --cache both and --jobs plan run more.

Without TARGET, all available targets are measured. Targets are those of
tare lifecycle. Files are laid out in tare's own directories, and removed. A
device is overwritten only if --i-know-this-destroys names it too, and never
while it is in use.`,
	Example: `  tare storage host runc --volume bind --size 8M --jobs randread,write --rounds 1 --ceiling 100ms
  tare storage runc --volume bind,tmpfs --cache direct,buffered --jobs read --bs 4k --size 4M --rounds 1 --ceiling 0 --drop files
  tare storage host runc --volume rootfs --tool dd --jobs write --size 4M --rounds 1 --ceiling 0 --settle 1s
  tare storage runc --volume bind --jobfile my.fio --rounds 1 --ceiling 0`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "the reasons of each verdict, every interval, the laid-out files, and the sources of imported figures",
}
