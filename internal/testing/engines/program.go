package engines

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/need"
)

// program returns the path of a program of an engine.
func program(name string, folders ...string) (string, error) {
	for _, f := range folders {
		if p := filepath.Join(f, name); unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	if len(folders) == 0 {
		if p, err := exec.LookPath(name); err == nil {
			return filepath.Abs(p)
		}
		// sbin is often missing from PATH.
		for _, f := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
			if p := filepath.Join(f, name); unix.Access(p, unix.X_OK) == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("no %s here; run scripts/install-tests engines", name)
}

// built is a folder of programs built by scripts/install-tests.
func built(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "/root/.cache"
	}
	return filepath.Join(cache, "tare", name, "bin")
}

// debian are the folders of programs in Debian's packages. A newer program elsewhere in
// PATH must not replace them.
var debian = []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}

// Runsc returns the path of gVisor's runtime, or "" unless the engines tier runs and has
// it.
func Runsc() string {
	if !need.IsRequired("engines") {
		return ""
	}
	p, _ := gvisor("runsc")
	return p
}

// Youki returns the path of youki, or "" unless scripts/install-tests built it.
func Youki() string {
	p, _ := program("youki", built(""))
	return p
}

func gvisor(name string) (string, error) {
	if p, err := program(name); err == nil {
		return p, nil
	}
	return program(name, built("")) // installed here by scripts/install-runtimes
}

// output runs a program and returns what it prints, without the last newline.
func output(env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// list returns the words that a program prints. It ends the test on an error.
func list(t TB, argv ...string) []string {
	t.Helper()
	out, err := output(nil, argv...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return strings.Fields(out)
}

// write writes files to a folder.
func write(dir string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(files[name], "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(files[name]), mode)); err != nil {
			return err
		}
	}
	return nil
}

// mayLowerOOMScore reports whether containers can get a negative oom_score_adj, as every
// CRI sandbox requires.
func mayLowerOOMScore() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&hdr, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// ulimits are the limits of podman's containers. None exceeds this process's own, because
// raising one requires CAP_SYS_RESOURCE.
func ulimits() (string, error) {
	var out []string
	for _, l := range []struct {
		name     string
		resource int
	}{{"nofile", unix.RLIMIT_NOFILE}, {"nproc", unix.RLIMIT_NPROC}} {
		var r unix.Rlimit
		if err := unix.Getrlimit(l.resource, &r); err != nil {
			return "", err
		}
		hard := min(r.Max, 16384)
		out = append(out, fmt.Sprintf("%q", fmt.Sprintf("%s=%d:%d", l.name, min(hard, 8192), hard)))
	}
	return strings.Join(out, ", "), nil
}

// quote quotes words for a shell.
func quote(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ")
}
