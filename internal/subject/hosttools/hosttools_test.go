package hosttools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func fio(t *testing.T) *Program {
	t.Helper()
	need.Tool(t, "fio")
	return must.Get(Fio(t.Context()))(t)
}

// The root file system only has the probe, the files of fio, and empty folders. It has no
// /proc and no /dev/shm.
func TestFioRunsInAnEmptyRoot(t *testing.T) {
	need.Root(t)
	p := fio(t)
	root := t.TempDir()
	must.OK(t, probe.Rootfs(root, p.Files...))
	in := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, p.Path, args...)
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		null, err := os.Open(os.DevNull) // /dev/null of the host
		must.OK(t, err)
		defer null.Close()
		cmd.Stdin = null
		out, err := cmd.CombinedOutput()
		must.That(t, err == nil, "%q: %v\n%s", args, err, out)
		return string(out)
	}
	check.Equal(t, "version in the empty root", strings.TrimSpace(in("--version")), p.Version)
	out := in("--name=seed", "--directory=/data", "--filename=file", "--size=1M", "--rw=randwrite", "--bs=64k",
		"--ioengine=psync", "--direct=1", "--numjobs=8", "--thread", "--group_reporting", "--output-format=json")
	check.Contains(t, "eight jobs did not write 16 blocks each", out, `"total_ios" : 128`)
	check.Equal(t, "the file", must.Get(os.Stat(filepath.Join(root, "data", "file")))(t).Size(), 1<<20)
}

func TestFindReturnsHostPaths(t *testing.T) {
	p := fio(t)
	i, err := interpreter(p.Path)
	must.That(t, err == nil && i != "", "%q %v", i, err)
	var paths []string
	for _, f := range p.Files {
		info, err := os.Stat(f.Source)
		check.That(t, err == nil && info.Mode().IsRegular() && f.Path == f.Source, "%+v: %v", f, err)
		paths = append(paths, f.Path)
	}
	check.That(t, slices.Contains(paths, p.Path) && slices.Contains(paths, i) && len(paths) >= 3, "%q", paths)
	sorted := slices.Clone(paths)
	check.That(t, len(slices.Compact(slices.Sorted(slices.Values(sorted)))) == len(paths), "duplicate file: %q", paths)
}

func TestStaticProgramNeedsNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, probe.Install(dir))
	path := filepath.Join(dir, probe.Name)
	check.Equal(t, path, must.Get(interpreter(path))(t), "")
}

func TestUnsuitableProgramsAreErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	write("script", "#!/bin/sh\necho 1\n")
	write("fio", "#!/bin/sh\necho fio-9\n")
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	for name, want := range map[string]string{
		"no-such-program": "apt-get install no-such-program",
		"script":          "not an ELF program",
		"fio":             "not an ELF program",
		"false":           "exit status 1",
	} {
		_, err := Find(t.Context(), name)
		check.Error(t, err, want)
	}
}

func TestInvalidLinkerListsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want []string
	}{
		"glibc": {"\tlinux-vdso.so.1 (0x00007ffd3e7f2000)\n\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f2b5c400000)\n" +
			"\tlibceph-common.so.2 => /usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2 (0x00007f34cc00000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f2b5c600000)\n",
			[]string{"/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2", "/lib64/ld-linux-x86-64.so.2"}},
		"musl":                {"\t/lib/ld-musl-x86_64.so.1 (0x7f2b5c600000)\n\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7f2b5c600000)\n", []string{"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-x86_64.so.1"}},
		"static":              {"\tstatically linked\n", nil},
		"a path with a space": {"\tliba.so => /opt/a b/liba.so (0x1)\n", []string{"/opt/a b/liba.so"}},
	} {
		check.Equal(t, name, must.Get(parseList(c.out))(t), c.want)
	}
	for name, out := range map[string]string{
		"a missing library":      "\tlibx.so.1 => not found\n",
		"a relative path":        "\tlibx.so.1 => lib/libx.so.1 (0x1)\n",
		"library without a path": "\tlibx.so.1 (0x1)\n",
		"no address":             "\tlibx.so.1 => /lib/libx.so.1\n",
		"no number":              "\tlibx.so.1 => /lib/libx.so.1 (0xzz)\n",
		"an error message":       "error while loading shared libraries: libx.so\n",
		"too many libraries":     strings.Repeat("\tlibx.so.1 => /lib/libx.so.1 (0x1)\n", most+1),
	} {
		got, err := parseList(out)
		check.That(t, err != nil, "%s was parsed as %q", name, got)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("\tlibz.so.1 => /lib/libz.so.1 (0x00007f2b5c400000)\n")
	f.Fuzz(func(t *testing.T, out string) {
		libs, err := parseList(out)
		for _, l := range libs {
			check.That(t, err != nil || filepath.IsAbs(l), "%q gave %q", out, libs)
		}
	})
}
