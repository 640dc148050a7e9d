package storage

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// Instrument describes this instrument to the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "What I/O a runtime loses.",
	Short: "Weigh what I/O a runtime loses, and tell a cache from a disk",
	Long: `Run fio, dd or sysbench on each target, on its root file system, on a folder of
the host, in memory, on an NFS server or on a block device; past the page cache
or through it. Every job runs in a sandbox of its own, on files that the same
writer laid out, after caches were dropped and the device has come to rest. The
tool is carried into the containers from this machine, so that all sides run the
same version.

Beside what the tool says stands what the device did meanwhile, and a verdict on
every figure: device, host cache, guest cache, not direct, contradicted, too short, throttled
or noisy. See docs/storage.md for the rules.

Without flags two jobs run past the page cache on a folder of the host, 1.5 s each,
in as many rounds as their comparison needs: a minute or so for two targets on a quiet
machine. --volume rootfs,bind,tmpfs, --cache both and --jobs plan ask for more.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle. Files are laid out in folders of tare's own, and removed. A
device is overwritten only if it is named by --i-know-this-destroys too, and
never one that is in use.`,
	Example: `  tare storage host runc --volume bind --size 8M --jobs randread,write --rounds 1 --ceiling 100ms
  tare storage runc --volume bind,tmpfs --cache direct,buffered --jobs read --bs 4k --size 4M --rounds 1 --ceiling 0 --drop files
  tare storage host runc --volume rootfs --tool dd --jobs write --size 4M --rounds 1 --ceiling 0 --settle 1s
  tare storage runc --volume bind --jobfile my.fio --rounds 1 --ceiling 0`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "why each verdict was given, every interval, what was laid out, and where imported figures stood",
}
