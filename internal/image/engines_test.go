package image

import (
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/imagetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestMain(m *testing.M) { engines.Main(m) }

const testName = "localhost/tare-image-test:1"

// archive builds the tar file of an image. It contains the current tare, and a fake tare
// for the other architecture.
func archive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	own, path := filepath.Join(dir, "tare"), filepath.Join(dir, "tare.tar")
	build := exec.Command("go", "build", "-trimpath", "-tags", "no_tls_fallback,grpcnotrace", "-ldflags", "-s -w", "-o", own, command) // the flags of scripts/go-test, to share its build cache
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, out)
	info := must.Get(buildinfo.ReadFile(own))(t)
	arch := slices.DeleteFunc(slices.Collect(maps.Keys(machines)), func(a string) bool { return a == runtime.GOARCH })[0]
	for i := range info.Settings {
		if info.Settings[i].Key == "GOARCH" {
			info.Settings[i].Value = arch
		}
	}
	var binaries []*Binary
	for _, path := range []string{own, stored(t, imagetest.Binary(machines[arch], info))} {
		b := must.Get(Open(path))(t)
		binaries = append(binaries, b)
	}
	i := must.Get(New(Options{Name: testName}, binaries...))(t)
	file := must.Get(os.Create(path))(t)
	defer file.Close()
	must.OK(t, i.WriteTar(file))
	return path
}

// says runs a command and checks its exit code and output.
func says(t *testing.T, words string, fails bool, argv ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	check.That(t, (err != nil) == fails && strings.Contains(string(out), words),
		"%s: %v, want output with %q:\n%s", strings.Join(argv, " "), err, words, out)
}

func TestImageRunsOnEachEngine(t *testing.T) {
	docker, podman, containerd := engines.Docker(t), engines.Podman(t), engines.Containerd(t, engines.V2)
	tar := archive(t)

	// Docker's image store has no index, so each architecture has its own image name.
	d := []string{docker.Command, "-H", docker.Host}
	name := testName + "-" + runtime.GOARCH
	says(t, "Loaded image: "+name, false, append(d, "load", "-i", tar)...)
	in := append(d, "run", "--rm", "--network", "none")
	weigh := []string{name, "lifecycle", "host", "floor", "--ops", "run", "--rounds", "1", "--warmup", "0", "-o", "/tmp/r.jsonl"}
	// These replace --privileged, because this machine may lack some of its capabilities.
	rights := []string{"--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "NET_ADMIN", "--security-opt", "seccomp=unconfined",
		"--security-opt", "apparmor=unconfined", "--pid", "host"}
	groups := []string{"-v", "/sys/fs/cgroup:/sys/fs/cgroup"}
	says(t, "tare ", false, append(in, name, "version")...)
	says(t, "failed 0/", false, slices.Concat(in, rights, groups, weigh)...)
	says(t, "share the host's with this container: docker run -v /sys/fs/cgroup", true, slices.Concat(in, rights, weigh)...)
	says(t, "set TARE_DATA_DIR and TARE_STATE_DIR", true, slices.Concat(in, rights, groups, []string{"--read-only"}, weigh)...)
	says(t, "failed 0/", false, slices.Concat(in, rights, groups, []string{"--read-only", "--tmpfs", "/tmp:exec", "-e", "TARE_DATA_DIR=/tmp/data", "-e", "TARE_STATE_DIR=/tmp/state"}, weigh)...)
	says(t, "Untagged", false, append(d, "rmi", name, testName+"-"+map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH])...)

	says(t, testName, false, podman.Command, "load", "-i", tar)
	says(t, "tare ", false, podman.Command, "run", "--rm", "--network", "none", testName, "version")

	c := []string{containerd.Ctr, "-a", containerd.Address, "-n", "image"}
	// ctr may exit before it prints its last progress message.
	says(t, "", false, append(c, "images", "import", tar)...)
	says(t, testName, false, append(c, "images", "ls", "-q")...)
	says(t, "tare ", false, append(c, "run", "--rm", testName, "version", Program, "version")...)
}
