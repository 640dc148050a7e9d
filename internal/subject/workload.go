package subject

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// VolumePath is where a container finds its folder of [Workload.Volume], or the tmpfs. Without
// both it is a folder of its root file system, writable for a workload with Files.
const VolumePath = setting.VolumePath

// DevicePath is where a container finds [Workload.Device].
const DevicePath = "/dev/tare"

// Workload is what containers have in addition to the probe.
type Workload struct {
	// Cargo is a user's program, which the probe executes after it has reported the first
	// instruction; nil for the probe alone.
	Cargo *cargo.Cargo
	// Files are copied into every root file system and image.
	Files []probe.File
	// Volume is a folder of the host, "" for none. The container on lane N has its folder "N",
	// which Open makes, at VolumePath, writable.
	Volume string
	// Tmpfs is the size in bytes of a tmpfs at VolumePath, instead of a Volume; 0 for none. It
	// is the container's own if its engine supports that.
	Tmpfs int64
	// Device is the path of a block device of the host, "" for none. Containers may read and
	// write it at DevicePath. A target that does not support it returns an error of Open that
	// wraps ErrUnsupported.
	Device string
}

// Image returns the image for engines, with the run's own name.
func (e *Env) Image() (*image.Image, error) {
	if e.Workload.Cargo != nil {
		return e.Workload.Cargo.Image.Of(e.RunID), nil
	}
	i, err := image.Probe(e.Workload.Files...)
	if err != nil {
		return nil, err
	}
	return i.Of(e.RunID), nil
}

// Args returns the arguments of a container's first process, the probe: the token for its
// report, and the program to execute.
func (w *Workload) Args(token string) []string {
	if w.Cargo == nil {
		return []string{token}
	}
	return append([]string{token}, w.Cargo.Args...)
}

// StopSignal returns the stop signal of containers in a runtime's form: "TERM", or a number if
// it has no name.
func (w *Workload) StopSignal() string {
	return cmp.Or(strings.TrimPrefix(unix.SignalName(w.Signal()), "SIG"), strconv.Itoa(int(w.Signal())))
}

// Signal returns the same as a number.
func (w *Workload) Signal() unix.Signal {
	if w.Cargo == nil {
		return unix.SIGTERM
	}
	return w.Cargo.Stop
}

// Refuser is a target that does not support every user's program.
type Refuser interface {
	// Refuses returns why it cannot be measured with w; nil if it can.
	Refuses(w *setting.Workload) *Unavailable
}

// ImageExporter is a target whose engine has images of the user.
type ImageExporter interface {
	// ExportImage writes an image to a file, as an archive. The error wraps cargo.ErrNoImage if the
	// engine has no such image.
	ExportImage(ctx context.Context, ref, file string) error
}

// Forgive drops the failure of a user's program that was ended by the stop signal without a
// handler for it.
func (w *Workload) Forgive(f *record.Failure) *record.Failure {
	if f != nil && f.Kind == record.FailWorkload && w.Cargo != nil && f.Exit == 128+int(w.Signal()) {
		return nil
	}
	return f
}

// Executor is a session that can run commands in its containers, as `docker exec` does.
type Executor interface {
	// Exec runs a command in the container on a lane and waits for its end. The end of ctx
	// kills it as far as the target can. args[0] is an absolute path in the container. It may
	// be called for several lanes concurrently, but not while a batch is armed. The error means
	// that the command did not run or that its end is unknown; a non-zero exit is not an error.
	Exec(ctx context.Context, lane int, args []string) (Executed, error)
}

// Executed is a command that has ended.
type Executed struct {
	Command string // the command or API call, pasteable: "docker exec ID /probe …"
	Exit    int    // exit code, 128+n for signal n
	Output  string // standard output, cut to MaxOutput
	Stderr  string // standard error, likewise; in Output if they cannot be separated
	CPU     int64  // ns, on the host only; else 0
	Fetched *int64 // bytes read from storage; nil if tare is not the process's parent
}

// Said returns the command's standard error, or output, cut to the size in records.
func (e *Executed) Said() string {
	return Cut(cmp.Or(e.Stderr, e.Output), 2048)
}

// Cut shortens foreign text to its beginning and its end.
func Cut(text string, most int) string {
	if len(text) > most {
		text = text[:most/2] + " … " + text[len(text)-most/2:]
	}
	return text
}

// MaxOutput bounds the output of a command.
const MaxOutput = 1 << 20

// Sandboxed is a session that reports its containers' processes and cgroups on this machine.
type Sandboxed interface {
	// Sandboxes returns one for each lane with a container or a pod, in the order of the lanes.
	// It is called while nothing is released.
	Sandboxes(ctx context.Context) ([]Sandbox, error)
}

// Sandbox is an engine's or a runtime's view of the container on a lane.
type Sandbox = attribution.Sandbox

// Reporter is a session whose engine reports statistics of its containers.
type Reporter interface {
	// Statistics queries the engine once for all containers. Memory is as the engine's command
	// shows it.
	Statistics(ctx context.Context) ([]record.Statistic, error)
}

// PodReporter is a session whose sandboxes are managed by others: a kubelet evicts pods and restarts
// containers.
type PodReporter interface {
	// PodStates returns the current state of each sandbox.
	PodStates(ctx context.Context) ([]record.Pod, error)
}
