package overhead

import (
	"io"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
)

// FormatRuntimeClass is the report format that can be applied to a cluster.
const FormatRuntimeClass = "runtimeclass"

// Instrument describes this instrument to the rest of tare.
var Instrument = instrument.Instrument{
	Name:  Name,
	Help:  "Memory and CPU usage of a sandbox by role, and the charged cgroups.",
	Short: "Measure memory and CPU usage of a sandbox by role, and the charged cgroups",
	Long: `Start sandboxes on each target and measure them idle and under load. The report
shows memory and CPU by role (workload, pause, shim, monitor, VMM, virtiofsd,
sentry, gofer, daemon, kernel, page cache), by cgroup, and as the engine reports
them. The residual is the change of the node's memory that no role explains.

Several counts of sandboxes give the cost of one more, with an interval, and how
many fit on this node. The report recommends a RuntimeClass with overhead.podFixed.
--check reports whether an existing overhead is enough, not enough, or not shown to
be enough, and in which phase. --check declared uses the overheads declared in the
cluster. --format runtimeclass prints only the RuntimeClass.

kubernetes/RUNTIMECLASS is measured on a node of the cluster, with pods created by
its kubelet. Use tare fleet for every node.

Without TARGET, all available targets are measured. Targets are those of
tare lifecycle. fio is copied from this machine into the containers, so that
all sides run the same version. It must be installed for phases such as 1G.`,
	Example: `  tare overhead runc crun
  tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi
  tare overhead runc --sandboxes 1 --phases 'hold 256MiB,spin 0.5cpu' --details
  tare overhead docker/runc --sandboxes 1 --check 250m,160Mi`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every cgroup's path, and the rule behind every role",
	Formats: map[string]instrument.Format{
		FormatRuntimeClass: {Help: "RuntimeClasses with the recommended overhead, for kubectl apply", Write: func(w io.Writer, j instrument.Judgement) error {
			return writeClasses(w, j.(*Judgement))
		}},
	},
}
