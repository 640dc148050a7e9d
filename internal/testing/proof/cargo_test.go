package proof

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

// big is the size in bytes of a file in the shell's image.
const big = 1 << 20

// shell returns an archive of a shell image with a user, a program and a command.
func shell(t *testing.T, command ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name string, content []byte) {
		must.OK(t, image.WriteFile(w, strings.TrimPrefix(name, "/"), 0o755, content, image.Created))
	}
	put("etc/passwd", []byte("root:x:0:0::/:/bin/sh\nweb:x:1234:5678::/srv:/bin/sh\n"))
	put("srv/own", []byte("from the image\n"))
	put("srv/program", probe.Program())
	put("srv/big", bytes.Repeat([]byte("tare"), big/4))
	there := map[string]bool{}
	for _, name := range []string{"bash", "id", "cat", "sleep", "fincore"} {
		tool := must.Get(hosttools.Find(t.Context(), name))(t)
		for _, f := range tool.Files {
			content := must.Get(os.ReadFile(f.Source))(t)
			if !there[f.Path] {
				put(f.Path, content)
			}
			there[f.Path] = true
		}
	}
	must.OK(t, w.Close())
	layer := filepath.Join(t.TempDir(), "layer.tar")
	must.OK(t, os.WriteFile(layer, b.Bytes(), 0o600))
	l := must.Get(tarball.LayerFromFile(layer))(t)
	img, err := mutate.AppendLayers(empty.Image, l)
	if err == nil {
		img, err = mutate.Config(img, v1.Config{Env: []string{"OF_IMAGE=i", "OF_BOTH=i", "PATH=/bin:/usr/bin"}, User: "web", WorkingDir: "/srv", Cmd: command})
	}
	must.OK(t, err)
	tag := must.Get(name.NewTag("app:1"))(t)
	archive := filepath.Join(t.TempDir(), "app.tar")
	must.OK(t, tarball.WriteToFile(archive, tag, img))
	return archive
}

// fleet returns targets of every kind with their engines.
func fleet(t *testing.T) []find.Found {
	t.Helper()
	docker, podman, containerd, crio := engines.Docker(t), engines.Podman(t), engines.Containerd(t, engines.V1), engines.CRIO(t)
	onPath(t, map[string]string{"skopeo": crio.Skopeo})
	at := map[string]subject.Engine{
		"docker": {Address: docker.Host}, "podman": {Command: podman.Command}, "containerd": {Address: containerd.Address},
		"cri+containerd": {Address: "unix://" + containerd.Address}, "cri+cri-o": {Address: "unix://" + crio.Socket},
	}
	names := []string{"host", "floor", "runc", "crun", "runsc=" + engines.Runsc(), "docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun"}
	return named(t, find.Settings{Engine: func(name string) subject.Engine {
		engine, _, _ := strings.Cut(name, "/")
		return at[engine]
	}}, names...)
}

// named returns the named targets, which must be available.
func named(t *testing.T, how find.Settings, names ...string) []find.Found {
	t.Helper()
	all := must.Get(find.Named(t.Context(), names, how))(t)
	for _, f := range all {
		must.That(t, f.Target != nil, "%v", f.Why)
	}
	return all
}

// fleetFlags returns the flags for the started engines of targets.
func fleetFlags(t *testing.T, targets ...string) (flags []string) {
	t.Helper()
	programs := map[string]string{}
	for _, target := range targets {
		switch engine, _, _ := strings.Cut(target, "/"); engine {
		case "docker":
			flags = append(flags, "--docker-host", engines.Docker(t).Host)
		case "podman":
			programs["podman"] = engines.Podman(t).Command
		case "containerd":
			flags = append(flags, "--containerd-address", engines.Containerd(t, engines.V1).Address)
		case "cri+containerd":
			flags = append(flags, "--cri", "containerd=unix://"+engines.Containerd(t, engines.V1).Address)
		case "cri+cri-o":
			crio := engines.CRIO(t)
			programs["skopeo"] = crio.Skopeo
			flags = append(flags, "--cri", "cri-o=unix://"+crio.Socket)
		}
	}
	onPath(t, programs)
	return flags
}

// stand opens a target with a workload, and closes it at the end of the test.
func stand(t *testing.T, p *place, target subject.Target, w setting.Workload) subject.Session {
	t.Helper()
	s, _ := within(t, p, workspace.DefaultRoots(), target, w, time.Minute)
	return s
}

// within is like stand with its own folders. It also returns the environment.
func within(t *testing.T, p *place, roots workspace.Roots, target subject.Target, w setting.Workload, timeout time.Duration) (subject.Session, subject.Env) {
	t.Helper()
	run := must.Get(workspace.New(roots))(t)
	p.ran(run.ID)
	t.Cleanup(func() { must.OK(t, run.Close()) })
	dir, _, err := run.Dirs("-cargo")
	must.OK(t, err)
	c := must.Get(cargo.Make(t.Context(), w, dir, nil))(t)
	data, state, err := run.Dirs(strings.ReplaceAll(target.Info().Name, "/", "-"))
	must.OK(t, err)
	limits := subject.DefaultLimits
	limits.Pids = 64
	env := subject.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: 1, Timeout: timeout, Limits: limits, Workload: subject.Workload{Cargo: c}}
	s := must.Get(target.Open(t.Context(), env))(t)
	t.Cleanup(func() { must.OK(t, s.Close(context.Background())) })
	return s, env
}

func operate(t *testing.T, s subject.Session, op subject.Op) *record.Sample {
	t.Helper()
	samples, err := subject.Operate(t.Context(), s, op, []int{0})
	must.That(t, err == nil, "%s: %v", op, err)
	return &samples[0]
}

// A user's image runs as configured on every target. It has its user, working folder,
// variables, requested variables, files and a folder of this machine, and exits when
// stopped. Its first instruction has a timestamp.
func TestUserImageRunsOnEveryTarget(t *testing.T) {
	p, out := folders(t), t.TempDir()
	must.OK(t, os.Chmod(out, 0o777))
	// The folder has a fixed mode, independent of its parents, because engines mount it
	// as root.
	script := `trap 'exit 0' TERM; echo "$OF_IMAGE $OF_BOTH $MINE $(id -u):$(id -g) $(pwd) $(cat own)" >/out/said; while :; do sleep 0.05; done`
	w := setting.Workload{
		Image: shell(t), Command: []string{"bash", "-c", script}, Env: []setting.Variable{"OF_BOTH=mine", "MINE=mine"}, Mounts: []setting.Mount{setting.Mount(out + ":/out")},
		HostCommand: []string{"bash", "-c", strings.ReplaceAll(script, "/out/", out+"/")},
	}
	for _, f := range fleet(t) {
		t.Run(f.Name, func(t *testing.T) {
			s := stand(t, p, f.Target, w)
			info := f.Target.Info()
			for op, def := range info.Operations { // descriptions must not mention the probe
				for _, of := range []string{"probe ID", "PROBE", "TERM"} {
					check.That(t, !strings.Contains(def.Command+def.Means, of),
						"%s is described as %q, %q for a user's program", op, def.Command, def.Means)
				}
			}
			sample := operate(t, s, subject.Run)
			if sample.Failure != nil {
				t.Fatalf("%+v", *sample.Failure)
			}
			check.That(t, (info.Clock == "host") == (sample.First != 0),
				"first instruction at %d on the clock of the %s", sample.First, info.Clock)
			want := "i mine mine 1234:5678 /srv from the image\n"
			if f.Name == "host" {
				dir, _ := os.Getwd()
				want = fmt.Sprintf(" mine mine %d:%d %s \n", os.Getuid(), os.Getgid(), dir)
			}
			check.Equal(t, "output", await(t, filepath.Join(out, "said")), want)
			for _, op := range []subject.Op{subject.Stop, subject.Remove} {
				if info.Operations[string(op)].Absent == "" {
					if sample := operate(t, s, op); sample.Failure != nil {
						t.Errorf("%s: %+v", op, *sample.Failure)
					}
				}
			}
			must.OK(t, s.Discard(t.Context(), []int{0}))
		})
	}
}

// Root in an image must not control the machine. It has the capabilities that engines
// grant, and cannot write to kernel settings. Nothing below a read-only folder is
// writable. The floor has no devices cgroup, so root must not create devices. Commands in
// the sandbox have no more rights.
func TestUserImageDoesNotControlTheMachine(t *testing.T) {
	p, in, out := folders(t), t.TempDir(), t.TempDir()
	below := filepath.Join(in, "below")
	must.OK(t, os.Mkdir(below, 0o755))
	must.OK(t, unix.Mount("tmpfs", below, "tmpfs", 0, ""))
	t.Cleanup(func() { must.OK(t, unix.Unmount(below, unix.MNT_DETACH)) })
	bash := need.Tool(t, "bash")
	caps := `while read -r name value; do case $name in CapInh:|CapEff:|CapBnd:) echo -n "$value ";; esac; done </proc/self/status; `
	script := `trap 'exit 0' TERM; { ` + caps + `for f in /proc/sys/kernel/domainname /proc/sysrq-trigger /proc/irq/default_smp_affinity /in/file /in/below/file /proc/self/comm; do
		case $f in */file) : >$f ;; *) [ -w $f ] ;; esac 2>/dev/null && echo -n "$f "; done; echo; } >/out/said; while :; do sleep 0.05; done`
	w := setting.Workload{Image: shell(t), User: "0:0", Command: []string{"bash", "-c", script}, Mounts: []setting.Mount{setting.Mount(in + ":/in:ro"), setting.Mount(out + ":/out")}}
	for _, f := range named(t, find.Settings{}, "floor", "runc") {
		t.Run(f.Name, func(t *testing.T) {
			s := stand(t, p, f.Target, w)
			if sample := operate(t, s, subject.Run); sample.Failure != nil {
				t.Fatalf("%+v", *sample.Failure)
			}
			set := map[string]string{"floor": "00000000a00425fb", "runc": "00000000a80425fb"}[f.Name]
			want := "0000000000000000 " + set + " " + set + " "
			if said := await(t, filepath.Join(out, "said")); said != want+"/proc/self/comm \n" {
				t.Errorf("capabilities (inheritable, effective, bounding) and writable files: %q, want %q and only /proc/self/comm", said, want)
			}
			if f.Name == "floor" {
				ran, err := s.(subject.Executor).Exec(t.Context(), 0, []string{bash, "-c", caps})
				check.That(t, err == nil && ran.Output == want, "capabilities of a command in the sandbox: %q (%v), want %q", ran.Said(), err, want)
			}
			must.OK(t, s.Discard(t.Context(), []int{0}))
		})
	}
}

// await reads a file once it contains a line, and removes it.
func await(t *testing.T, path string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && bytes.HasSuffix(b, []byte("\n")) {
			must.OK(t, os.Remove(path))
			return string(b)
		}
	}
	t.Fatalf("timed out waiting for %s", path)
	return ""
}

// An image of an engine is measured by its name. Every target runs the same image, the
// host is skipped, and no record or report contains the value of a variable.
func TestEngineImageIsMeasuredEverywhere(t *testing.T) {
	docker, podman := engines.Docker(t), engines.Podman(t)
	archive := shell(t)
	for engine, load := range map[string]*exec.Cmd{
		"docker": exec.Command("docker", "-H", docker.Host, "load", "-i", archive),
		"podman": exec.Command(podman.Command, "load", "-q", "-i", archive),
	} {
		out, err := load.CombinedOutput()
		must.That(t, err == nil, "%s: %v\n%s", engine, err, out)
	}
	for from, targets := range map[string][]string{
		"docker": {"host", "floor", "docker/runc", "runc"},
		"podman": {"runc", "podman/crun"},
	} {
		t.Setenv("PATH", filepath.Dir(podman.Command)+":"+os.Getenv("PATH"))
		args := []string{"lifecycle", "--rounds", "1", "--warmup", "0", "--ops", "run", "--docker-host", docker.Host, "--image", "app:1",
			"--env", "SECRET=do-not-tell", "--user", "0", "--command", `bash -c 'trap "exit 0" TERM; while :; do sleep 0.05; done'`}
		recs, judged, text := tare(folders(t), lifecycle.Judge, append(args, targets...)...)
		w := recs[0].Header.Workload
		check.That(t, w != nil && w.Source == from+": app:1" && slices.Equal(w.Env, []string{"SECRET"}) && w.User == "0:0" && len(w.Command) == 3,
			"%s: recorded workload %+v", from, w)
		if j := judged[0]; j.Failed > 0 || j.Total == 0 || len(j.Record.Targets) != len(targets)-strings.Count(strings.Join(targets, " "), "host") {
			t.Errorf("%s: %d of %d operations failed on %d targets", from, j.Failed, j.Total, len(j.Record.Targets))
		}
		var whole bytes.Buffer
		must.OK(t, json.NewEncoder(&whole).Encode(recs[0]))
		check.Lacks(t, fmt.Sprintf("%s: the record or report has a variable's value", from), whole.String()+text, "do-not-tell")
	}
}

// The plan of the service that was moved to Kata must accept any archive. If the memory
// usage of two archives differs, the measured figures must differ by the same amount.
// Their documents must have every table in the map of the reports.
func TestSwitchedServiceAcceptsAnyArchive(t *testing.T) {
	need.Long(t)
	p := folders(t)
	plan := filepath.Join(p.dir, "kata-service.yaml")
	must.Write(t, plan, onTargets(t, "kata-service", []string{"[runc, floor]"}))
	const less, more = 4 * mib, 68 * mib
	held := map[int]map[string]float64{}
	for _, bytes := range []int{less, more} {
		archive := shell(t, "bash", "-c", fmt.Sprintf(`trap 'kill $!; exit 0' TERM; /srv/program hold %d 1000 & wait`, bytes))
		dir := filepath.Join(p.dir, fmt.Sprint(bytes))
		documents := documented(t, p, []string{"run", plan, "-o", dir, "--image", archive, "--ready", "log:^tare-hold/1 ", "--rounds", "1", "--hold", "300ms", "--settle", "100ms"}, 1)
		for _, row := range mapped(t, "kata-service") {
			row.look(t, documents)
		}
		rec, j := stored(p, filepath.Join(dir, "01-overhead.jsonl"), overhead.Judge)
		w := rec.Header.Workload
		check.That(t, w != nil && w.Source == "the file app.tar" && w.Command[0] == "bash", "recorded workload %+v", w)
		held[bytes] = map[string]float64{}
		for _, f := range j.Figures() {
			if f.Quantity == "role-memory" && f.Labels.Get("role") == string(record.RoleWorkload) {
				held[bytes][f.Labels.Get("target")] = f.Value
			}
		}
	}
	for _, target := range []string{"runc", "floor"} {
		differ := held[more][target] - held[less][target]
		check.That(t, math.Abs(differ-(more-less)) <= 0.01*(more-less), "%s: usage differs by %.2f MiB, want %d MiB", target, differ/mib, (more-less)/mib)
	}
}

// A missing program is reported as missing.
func TestMissingProgramIsReported(t *testing.T) {
	p, archive := folders(t), shell(t)
	for _, f := range named(t, find.Settings{}, "floor", "runc") {
		t.Run(f.Name, func(t *testing.T) {
			s := stand(t, p, f.Target, setting.Workload{Image: archive, Command: []string{"nonesuch"}})
			x := operate(t, s, subject.Run)
			check.That(t, x.Failure != nil && strings.Contains(x.Failure.Output, "cannot run nonesuch: no such program"), "%+v", x.Failure)
		})
	}
}
