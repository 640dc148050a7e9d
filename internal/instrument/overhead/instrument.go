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
	Help:  "Whose memory and CPU a sandbox uses, and which cgroup is charged.",
	Short: "Weigh whose memory and CPU a sandbox uses, and which cgroup is charged",
	Long: `Start sandboxes on each target, watch them idle and under load, and close the
books: memory and CPU by role (workload, pause, shim, monitor, VMM, virtiofsd,
sentry, gofer, daemon, kernel, page cache), by cgroup, what the engine itself
reports beside the truth, and the residual, which is what the node's memory
changed by and no role explains.

Counts of sandboxes give the cost of one more, with an interval, and how many
fit on this node; from all of it comes a RuntimeClass with overhead.podFixed.
--check tells of an existing one whether it is enough, not enough, or not shown to
be, and in which phase; --check declared of those of the cluster. --format runtimeclass
prints the RuntimeClass and nothing else.

kubernetes/RUNTIMECLASS is weighed on a node of the cluster, as its kubelet makes the
pods; on every node by tare fleet.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle. fio is carried into the containers from this machine, so that
all sides run the same version; it has to be installed for phases such as 1G.`,
	Example: `  tare overhead runc crun
  tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi
  tare overhead runc --sandboxes 1 --phases 'hold 256MiB,spin 0.5cpu' --details
  tare overhead docker/runc --sandboxes 1 --check 250m,160Mi`,
	New:        func() option.Options { o := Defaults(); return &o },
	Quantities: &Quantities,
	Judge:      instrument.Judging(Judge),
	Verbose:    "every cgroup's path, and by which fact every role was decided",
	Formats: map[string]instrument.Format{
		FormatRuntimeClass: {Help: "RuntimeClasses with what was found, for kubectl apply", Write: func(w io.Writer, j instrument.Judgement) error {
			return writeClasses(w, j.(*Judgement))
		}},
	},
}
