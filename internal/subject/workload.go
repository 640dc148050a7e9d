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

// VolumePath is where a container finds its own folder of [Workload.Volume], or
// the tmpfs; without both it is a folder of its own root file system, which a
// workload that carries Files can write to.
const VolumePath = setting.VolumePath

// DevicePath is where a container finds [Workload.Device].
const DevicePath = "/dev/tare"

// Workload is what containers hold beside the probe.
type Workload struct {
	// Cargo is a program of the user's own, which the probe becomes once it has said
	// when its first instruction ran; nil for the probe alone.
	Cargo *cargo.Cargo
	// Files are carried into every root file system and image.
	Files []probe.File
	// Volume is a folder of the host, "" for none. The container on lane N
	// has its folder "N" at VolumePath, writable. Open makes those folders.
	Volume string
	// Tmpfs is the size in bytes of a tmpfs at VolumePath, instead of a Volume;
	// 0 for none. It is the container's own where its engine has such mounts.
	Tmpfs int64
	// Device is the path of a block device of the host, "" for none. Containers
	// may read and write it at DevicePath. A target whose sandboxes cannot have
	// it says so by an error of Open that wraps ErrUnsupported.
	Device string
}

// Image is what engines start containers from, under the run's own name.
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

// Args are the arguments of a container's first process, the probe: the token that it
// reports with, and what it becomes.
func (w *Workload) Args(token string) []string {
	if w.Cargo == nil {
		return []string{token}
	}
	return append([]string{token}, w.Cargo.Args...)
}

// StopSignal is the one by which containers are stopped, in a runtime's words: "TERM", or
// its number where it has no name.
func (w *Workload) StopSignal() string {
	return cmp.Or(strings.TrimPrefix(unix.SignalName(w.Signal()), "SIG"), strconv.Itoa(int(w.Signal())))
}

// Signal is the same as a number.
func (w *Workload) Signal() unix.Signal {
	if w.Cargo == nil {
		return unix.SIGTERM
	}
	return w.Cargo.Stop
}

// Particular is a target that not every program of the user's own can be given to.
type Particular interface {
	// Refuses is why it is not weighed with one, nil where it is.
	Refuses(w *setting.Workload) *Unavailable
}

// Lender is a target whose engine has images of the user's own.
type Lender interface {
	// Lend writes the image of a name into a file, as an archive. The error wraps
	// cargo.ErrNoImage where the engine has none of that name.
	Lend(ctx context.Context, ref, file string) error
}

// Forgive passes over the failure of a program of the user's own that ended by the
// signal, and with no handler for it, by which it was told to.
func (w *Workload) Forgive(f *record.Failure) *record.Failure {
	if f != nil && f.Kind == record.FailWorkload && w.Cargo != nil && f.Exit == 128+int(w.Signal()) {
		return nil
	}
	return f
}

// Executor is a session that can run further commands in its containers, as
// `docker exec` does.
type Executor interface {
	// Exec runs a command in the container on a lane and waits for its end;
	// ctx's end kills it as far as the target can. args[0] is an absolute path
	// inside the container, the rest are its arguments. It may be called for
	// several lanes at once, and not while a batch is armed. The error is for
	// what kept the command from running or its end from being known; that it
	// exited non-zero is no error.
	Exec(ctx context.Context, lane int, args []string) (Executed, error)
}

// Executed is a command that has ended.
type Executed struct {
	Command string // what was called, pasteable or an API's call: "docker exec ID /probe …"
	Exit    int    // its exit code, 128+n for signal n
	Output  string // standard output, cut to MaxOutput
	Stderr  string // standard error, likewise; where they cannot be told apart all is in Output
	CPU     int64  // ns that it used, where nothing but its own process can tell: on the host; else 0
	Fetched *int64 // bytes that it had the kernel read from storage; nil where its process is not tare's to wait for
}

// Said is what the command printed, its standard error first, cut to the size that
// records keep.
func (e *Executed) Said() string {
	return Cut(cmp.Or(e.Stderr, e.Output), 2048)
}

// Cut bounds foreign text to its beginning and its end.
func Cut(text string, most int) string {
	if len(text) > most {
		text = text[:most/2] + " … " + text[len(text)-most/2:]
	}
	return text
}

// MaxOutput is how much of a command's output is kept.
const MaxOutput = 1 << 20

// Sandboxed is a session that says what its containers are on this machine.
type Sandboxed interface {
	// Sandboxes returns one for each lane that holds a container or a pod, in
	// the order of the lanes. It is called while nothing is released.
	Sandboxes(ctx context.Context) ([]Sandbox, error)
}

// Sandbox is what an engine or a runtime says of what is on one lane.
type Sandbox = attribution.Sandbox

// Reporter is a session whose engine reports statistics of its containers.
type Reporter interface {
	// Statistics asks the engine, once, for all containers that are held. Its
	// Memory is as the engine's own command shows it.
	Statistics(ctx context.Context) ([]record.Statistic, error)
}

// Tended is a session whose sandboxes somebody else looks after once they are there: a
// kubelet ends some, and begins their containers again.
type Tended interface {
	// Became says what has become of each of them since it was made.
	Became(ctx context.Context) ([]record.Pod, error)
}
