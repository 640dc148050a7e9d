package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// claim is a command in the guest, which must exit with 0, and a check of its outcome.
type claim struct {
	name  string // name of the command
	says  string
	args  []string
	holds func(t *testing.T, out *Outcome)
}

// claims are in the order of their commands. None has a time limit, because the time of a
// command depends on other work on the CPUs.
var claims = []claim{
	{"machine", "systemd runs the engines with its own cgroup driver and AppArmor", script(machineScript), theDebian},
	{"doctor", "doctor finds cgroup v2 and every engine", []string{"tare", "doctor", "--format", "json"}, doctoredDebian},
	{"lifecycle", "lifecycle weighs every engine without a failure", tare("lifecycle", targets, "--warmup", "0"), livedEverywhere},
	{"overhead", "overhead finds charges and limits in the groups that systemd makes",
		tare("overhead", charging, "--sandboxes", "1", "--hold", "500ms", "--interval", "250ms", "--settle", "8s",
			"--phases", "hold 16MiB", "--limit", fmt.Sprint("memory=", smallLimit)), chargedInSlices},
	{"ready", "a service in docker is asked from outside whether it is ready", script(readyScript), becameReady},
	{"storage", "storage weighs fio's jobs in docker",
		tare("storage", []string{"docker/runc"}, "--volume", "bind", "--jobs", "randread",
			// Not --cache direct: uncached random reads in docker made the emulated disk
			// hang.
			"--cache", "buffered", "--size", "1M", "--numjobs", "1", "--ceiling", "0", "--settle", "1s", "--drop", "files"), stored},
	{"killed", "clean removes what a kill -9 left on every engine", script(leaveScript + `
		leave runc 'tare-run-*/*/*'
		leave docker/runc 'system.slice/docker-*.scope'
		leave podman/crun 'machine.slice/libpod-*.scope'
		` + cleanScript), func(t *testing.T, out *Outcome) { cleaned(t, out, 3) }},
}

// current are the claims on the current Debian release, in which docker's command line is
// a separate package.
var current = []claim{
	{"machine", "systemd runs podman with its own cgroup driver", script(currentScript), theCurrent},
	claims[1], claims[2],
}

// The power cut happens during the third of three runs.
var (
	beforePowerCut = script(leaveScript + `
		leave docker/runc 'system.slice/docker-*.scope'
		leave podman/crun 'machine.slice/libpod-*.scope'
		leave cri+containerd/runc 'system.slice/cri-containerd-*.scope' running`)
	afterPowerCut = claim{"killed", "clean removes what a power cut left on every engine", script(cleanScript),
		func(t *testing.T, out *Outcome) { cleaned(t, out, 3) }}
)

const smallLimit = 64 << 20

// lifecycle measures targets. overhead measures charging, which has one target for each
// way to assign containers to cgroups.
var (
	targets  = []string{"runc", "crun", "docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc"}
	charging = []string{"runc", "docker/runc", "podman/crun", "cri+containerd/runc"}
	groups   = []string{"/tare-run-", "/system.slice/docker-", "/machine.slice/libpod-", "/system.slice/cri-containerd-"}
)

// tare returns a command line that measures targets in one round. The record is named
// after the verb.
func tare(verb string, targets []string, args ...string) []string {
	return slices.Concat([]string{"tare", verb}, targets, args, []string{"--rounds", "1", "--timeout", "30m", "--quiet", "-o", "/out/" + verb + ".jsonl.zst"})
}

func script(text string) []string { return []string{"sh", "-c", text} }

// The distribution's files do not configure systemd's cgroup driver for CRI.
var configured = map[string]string{
	"/etc/containerd/config.toml": `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/tare-test-pause:absent"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
`,
}

const (
	// podman's first response is the slowest.
	machineScript = `
		cat /proc/1/comm
		stat -f -c %T /sys/fs/cgroup
		docker info --format '{{.CgroupDriver}} {{.CgroupVersion}} {{.SecurityOptions}}'
` + podmanScript
	currentScript = `
		cat /proc/1/comm
		stat -f -c %T /sys/fs/cgroup
` + podmanScript
	podmanScript = `
		podman info --format '{{.Host.CgroupManager}} {{.Host.CgroupsVersion}}'
		systemctl is-active docker containerd`

	readyScript = `set -e
		tar -c -C /usr/bin busybox | docker import - app >&2
		tare lifecycle docker/runc --image app --command '/busybox httpd -f -p 8080' --ready tcp:8080 --ops run --warmup 0 \
			--rounds 1 --timeout 30m --quiet -o /out/ready.jsonl.zst
		docker rmi app >&2`

	// leaveScript kills a run with kill -9 once it has a container, or leaves it running.
	leaveScript = `set -e
		leave() {
			tare overhead "$1" --sandboxes 1 --rounds 1 --hold 1h --interval 1s --settle 0s --timeout 30m --quiet -o "/root/$(mktemp -u XXXXXX).jsonl" >&2 &
			run=$!
			until ls -d /sys/fs/cgroup/$2 >/dev/null 2>&1; do
				kill -0 $run
				sleep 0.1
			done
			[ "${3:-}" ] || kill -9 $run
		}`
	// cleanScript prints what clean removes, and then every object of tare that is left.
	cleanScript = `
		set +e
		tare clean --format json
		tare clean --format json
		docker ps -aq
		docker images -q
		podman ps -aq
		podman images -q
		for namespace in $(ctr namespaces ls -q); do
			for kind in containers images snapshots; do
				ctr -n "$namespace" "$kind" ls | tail -n +2
			done
		done
		find /sys/fs/cgroup -name 'tare-*'
		ls -A /var/lib/tare
		ls -A /run/tare | grep -vx lock
		grep tare /proc/mounts
		true`
)

func TestDebianWithSystemd(t *testing.T) {
	g := debian(t, "bookworm", claims...)
	g.BeforePowerCut = beforePowerCut
	boot(t, g, claims...)
	// Boot again from the same disk, after the power cut.
	g.Commands, g.BeforePowerCut = []Command{{afterPowerCut.name, afterPowerCut.args}}, nil
	boot(t, g, afterPowerCut)
}

func TestCurrentDebianWithSystemd(t *testing.T) {
	boot(t, debian(t, "trixie", current...), current...)
}

// boot runs a guest once for all claims.
func boot(t *testing.T, g *Guest, claims ...claim) {
	t.Helper()
	out := must.Get(Run(t.Context(), *g))(t)
	t.Logf("the machine ran for %v", out.Ran.Round(time.Second))
	for _, c := range claims {
		t.Run(c.says, func(t *testing.T) { c.check(t, out) })
	}
}

func (c *claim) check(t *testing.T, out *Outcome) {
	must.That(t, out.Exits[c.name] == 0, "%v", out.Output(c.name))
	c.holds(t, out)
	if t.Failed() {
		t.Log(out.Output(c.name))
	}
}

// debian returns a guest of a suite with the commands of claims.
func debian(t *testing.T, suite string, claims ...claim) *Guest {
	t.Helper()
	need.VM(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the machine has x86-64 CPUs, and runs this machine's programs")
	}
	dir := t.TempDir()
	goes(t, "build", "-trimpath", "-tags", "no_tls_fallback,grpcnotrace", "-ldflags", "-s -w", "-o", dir, "github.com/tare-bench/tare/cmd/tare")
	disk := must.Get(NewDisk(t.Context(), suite, dir))(t)
	busybox := must.Get(program("busybox", install))(t)
	g := &Guest{Disk: disk, Files: map[string]string{"/usr/bin/tare": filepath.Join(dir, "tare"), "/usr/bin/busybox": busybox}}
	for to, text := range configured {
		g.Files[to] = filepath.Join(dir, filepath.Base(to))
		must.OK(t, os.WriteFile(g.Files[to], []byte(text), 0o644))
	}
	for _, c := range claims {
		g.Commands = append(g.Commands, Command{c.name, c.args})
	}
	return g
}

func theDebian(t *testing.T, out *Outcome) {
	got := string(out.Files["machine.stdout"])
	check.Contains(t, "got", got, "systemd\ncgroup2fs\nsystemd 2 [name=apparmor ", "\nsystemd v2\nactive\nactive\n")
}

func theCurrent(t *testing.T, out *Outcome) {
	check.Equal(t, "machine", string(out.Files["machine.stdout"]), "systemd\ncgroup2fs\nsystemd v2\nactive\nactive\n")
}

func doctoredDebian(t *testing.T, out *Outcome) {
	doctorFinds(t, out, map[string][]string{"": append(slices.Clone(targets), "cgroups", "host", "floor")})
}

func livedEverywhere(t *testing.T, out *Outcome) {
	l := judged(t, out, "lifecycle", lifecycle.Judge)
	must.That(t, l.Failed == 0 && l.Unproven == 0 && len(l.All) > 0,
		"%d of %d operations failed, %d unproven, %d figures", l.Failed, l.Total, l.Unproven, len(l.All))
	timed := map[string]int{}
	for _, f := range l.All {
		if f.Quantity == "latency" && f.N == 1 && f.Value > 0 {
			timed[f.Labels.Get("target")]++
		}
	}
	for _, target := range targets {
		want := len(subject.ContainerOps)
		if strings.HasPrefix(target, "cri+") {
			want = len(subject.Ops)
		}
		check.That(t, timed[target] == want, "%d operations of %s have times, want %d", timed[target], target, want)
	}
}

func chargedInSlices(t *testing.T, out *Outcome) {
	o := judged(t, out, "overhead", overhead.Judge)
	at := slices.IndexFunc(o.Tables, func(t overhead.Table) bool { return t.Phase == "hold 16MiB" })
	must.That(t, o.Failed == 0 && at >= 0 && len(o.Tables[at].Cells) == len(charging),
		"%d of %d phases failed, in %d tables", o.Failed, o.Total, len(o.Tables))
	for i, c := range o.Tables[at].Cells {
		// The services of a full Debian cause unexplained usage, so the residual is not
		// checked.
		holds(t, c)
		charged(t, groups[i], c)
	}
}

// charged checks that a target's memory is charged to the cgroup in which systemd puts
// its containers, with the configured limit.
func charged(t *testing.T, groups string, c overhead.Cell) {
	t.Helper()
	pods := 0
	for _, g := range c.Ledger.Groups {
		if g.Charge != record.ChargePod {
			continue
		}
		pods++
		check.That(t, g.Limit == smallLimit && g.Usage >= 16<<20,
			"%s: limit %d, %d bytes charged to %v", c.Target, g.Limit, g.Usage, g.Paths)
		for _, path := range g.Paths {
			check.That(t, strings.HasPrefix(path, groups), "%s: charged to %s, want %s…", c.Target, path, groups)
		}
	}
	check.That(t, pods == 1, "%s: %d rows of its own cgroups: %+v", c.Target, pods, c.Ledger.Groups)
}

func becameReady(t *testing.T, out *Outcome) {
	l := judged(t, out, "ready", lifecycle.Judge)
	must.That(t, l.Failed == 0 && l.Total > 0, "%d of %d operations failed", l.Failed, l.Total)
	ready := l.All.Of("time-to", "stamp", string(record.StampReady))
	check.That(t, ready.N == 1, "ready in %d rounds: %+v", ready.N, ready)
}

func stored(t *testing.T, out *Outcome) {
	s := judged(t, out, "storage", storage.Judge)
	must.That(t, s.Failed == 0 && len(s.Tables) == 1, "%d of %d jobs failed, in %d tables", s.Failed, s.Total, len(s.Tables))
	for _, table := range s.Tables {
		check.Equal(t, fmt.Sprintf("%s on %s", table.Job, table.Volume), len(table.Cells), 1)
	}
}

// cleaned checks that clean found the interrupted runs, then nothing, and that nothing
// else is left.
func cleaned(t *testing.T, out *Outcome, runs int) {
	answers := json.NewDecoder(bytes.NewReader(out.Files["killed.stdout"]))
	var found [2]struct {
		LeftBehind []json.RawMessage `json:"left_behind"`
	}
	for i, want := range []int{runs, 0} {
		must.OK(t, answers.Decode(&found[i]))
		check.Equal(t, fmt.Sprintf("clean %d found", i+1), len(found[i].LeftBehind), want)
	}
	check.Equal(t, "still", strings.TrimSpace(string(out.Files["killed.stdout"][answers.InputOffset():])), "")
}

// judged reads and judges a record written by a command.
func judged[J any](t *testing.T, out *Outcome, name string, judge func(*record.Record) (J, error)) J {
	t.Helper()
	return must.Get(judge(recorded(t, out, name)))(t)
}
