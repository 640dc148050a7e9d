package probe

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// run runs the probe until it exits.
func run(t *testing.T, args []string) (out, errs string, exit int) {
	t.Helper()
	cmd := command(t, args)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var ended *exec.ExitError
	must.That(t, err == nil || errors.As(err, &ended), "%v", err)
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func fill(t *testing.T, bytes int64, files ...string) {
	t.Helper()
	out, errs, exit := run(t, FillArgs(bytes, files...))
	f, err := ParseFilled(out)
	must.That(t, err == nil && exit == 0 && errs == "" && f.Files == len(files) && f.Bytes == bytes && f.Took > 0,
		"%q %q %d: %+v %v", out, errs, exit, f, err)
}

func TestFillCreatesFoldersAndFilesOfExactSize(t *testing.T) {
	for _, size := range []int64{1, 4096, 1<<20 - 1, 1 << 20, 2<<20 + 7} {
		t.Run(strconv.FormatInt(size, 10), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
			fill(t, size, files...)
			fill(t, size, files...) // over existing files
			for _, f := range files {
				check.Equal(t, "Size", must.Get(os.Stat(f))(t).Size(), size)
			}
		})
	}
}

// Root in a container with a user namespace is an unprivileged user outside of it.
func TestFilledFilesAreWorldWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	fill(t, 4096, file)
	check.Equal(t, "Mode", must.Get(os.Stat(file))(t).Mode(), 0o666)
}

func TestFillRefusesSymlinks(t *testing.T) {
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link")
	must.OK(t, errors.Join(os.WriteFile(other, []byte("theirs"), 0o600), os.Symlink(other, link)))
	out, _, exit := run(t, FillArgs(4096, link))
	var at *FileError
	_, err := ParseFilled(out)
	check.That(t, exit == 1 && errors.As(err, &at) && at.Errno == unix.ELOOP, "%q %d", out, exit)
	check.Equal(t, "target of the link", string(must.Get(os.ReadFile(other))(t)), "theirs")
}

func TestFillTruncatesALargerFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	fill(t, 8192, file)
	fill(t, 100, file)
	check.Equal(t, "Size", must.Get(os.Stat(file))(t).Size(), 100)
}

// The data does not repeat within a file, in other files, or in later runs.
func TestFilledDataIsIncompressible(t *testing.T) {
	dir := t.TempDir()
	var all bytes.Buffer
	for run := range 2 {
		files := []string{filepath.Join(dir, fmt.Sprint("a", run)), filepath.Join(dir, fmt.Sprint("b", run))}
		fill(t, 2<<20, files...)
		for _, f := range files {
			b := must.Get(os.ReadFile(f))(t)
			all.Write(b)
		}
	}
	seen := map[string]int{}
	for i := 0; i < all.Len(); i += 512 {
		seen[string(all.Bytes()[i:i+512])]++
	}
	check.Equal(t, "sectors", len(seen), all.Len()/512)
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed)
	_, err := io.Copy(w, bytes.NewReader(all.Bytes()))
	must.That(t, err == nil && w.Close() == nil, "%v", err)
	check.That(t, packed.Len() >= all.Len(), "%d bytes were compressed to %d", all.Len(), packed.Len())
}

// resident returns the number of pages of a file in the page cache.
func resident(t *testing.T, path string) (n int) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	info, _ := f.Stat()
	m := must.Get(unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED))(t)
	defer func() { _ = unix.Munmap(m) }()
	vec := make([]byte, (len(m)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&vec[0])))
	must.That(t, errno == 0, "%v", errno)
	for _, v := range vec {
		n += int(v & 1)
	}
	return n
}

func TestEvictRemovesFilesFromThePageCache(t *testing.T) {
	dir := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skip("tmpfs only exists in the page cache: set TMPDIR to a disk", err)
	}
	file := filepath.Join(dir, "a")
	fill(t, 4<<20, file)
	check.Equal(t, "cached pages after fill", resident(t, file), 0)
	must.OK(t, os.WriteFile(file, make([]byte, 4<<20), 0o600)) // dirty pages
	n := resident(t, file)
	must.That(t, n >= 1024, "only %d pages are cached after a write", n)
	out, errs, exit := run(t, EvictArgs(file, file))
	n, err := ParseEvicted(out)
	check.That(t, n == 2 && err == nil && exit == 0 && errs == "", "%q %q %d: %d %v", out, errs, exit, n, err)
	check.Equal(t, "cached pages after evict", resident(t, file), 0)
}

func TestFileErrorsHaveTheErrno(t *testing.T) {
	dir := t.TempDir()
	deep, absent := filepath.Join(dir, "a", "b", "c"), filepath.Join(dir, "a b\\ü")
	file := filepath.Join(dir, "file")
	fill(t, 1, file)
	for name, c := range map[string]struct {
		args  []string
		parse func(string) error
		want  FileError
	}{
		"fill a full device":       {FillArgs(4096, file, "/dev/full"), filled, FileError{"fill", "/dev/full", syscall.ENOSPC}},
		"fill in missing folders":  {FillArgs(1, deep), filled, FileError{"fill", deep, syscall.ENOENT}},
		"fill a missing device":    {FillArgs(1, "/dev/tare-absent"), filled, FileError{"fill", "/dev/tare-absent", syscall.ENOENT}},
		"fill a folder":            {FillArgs(1, dir), filled, FileError{"fill", dir, syscall.EISDIR}},
		"fill a file below a file": {FillArgs(1, file+"/x"), filled, FileError{"fill", file + "/x", syscall.ENOTDIR}},
		"evict a missing file":     {EvictArgs(file, absent), evicted, FileError{"evict", absent, syscall.ENOENT}},
		"evict a device":           {EvictArgs("/dev/null"), nil, FileError{}},
		"read a missing file":      {DirectArgs(absent), directed, FileError{"direct", absent, syscall.ENOENT}},
		"read a folder":            {DirectArgs(dir), directed, FileError{"direct", dir, syscall.EISDIR}},
	} {
		out, errs, exit := run(t, c.args)
		if c.parse == nil {
			check.That(t, exit == 0, "%s: %d %q %q", name, exit, out, errs)
			continue
		}
		var fe *FileError
		err := c.parse(out)
		check.That(t, exit == 1 && errors.As(err, &fe) && *fe == c.want && errors.Is(err, c.want.Errno), "%s: %d %q: %v", name, exit, out, err)
		check.Equal(t, name, fmt.Sprintf("tare-probe: %s: %s: errno %d\n", c.want.Verb, c.want.Path, c.want.Errno), errs)
	}
	_, err := os.Stat("/dev/tare-absent")
	check.That(t, err != nil, "a file was created instead of the device")
}

func filled(out string) error   { _, err := ParseFilled(out); return err }
func evicted(out string) error  { _, err := ParseEvicted(out); return err }
func directed(out string) error { _, err := ParseDirect(out); return err }

// mounted mounts a small tmpfs.
func mounted(t *testing.T, options string) string {
	t.Helper()
	need.Root(t)
	dir := t.TempDir()
	must.OK(t, unix.Mount("tare-probe-test", dir, "tmpfs", unix.MS_NODEV, "mode=700,"+options))
	t.Cleanup(func() { must.OK(t, unix.Unmount(dir, 0)) })
	return dir
}

func TestFileThatDoesNotFitIsTruncated(t *testing.T) {
	dir := mounted(t, "size=4m")
	file := filepath.Join(dir, "a")
	out, _, exit := run(t, FillArgs(5<<20, file))
	_, err := ParseFilled(out)
	check.That(t, errors.Is(err, syscall.ENOSPC) && exit == 1, "%q %d: %v", out, exit, err)
	check.Equal(t, "Size", must.Get(os.Stat(file))(t).Size(), 0)
}

func TestFillFailsOnAReadOnlyFileSystem(t *testing.T) {
	dir := mounted(t, "size=4m")
	must.OK(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for _, file := range []string{"a", "new/a"} {
		out, _, exit := run(t, FillArgs(1, filepath.Join(dir, file)))
		_, err := ParseFilled(out)
		check.That(t, errors.Is(err, syscall.EROFS) && exit == 1, "%q %d: %v", out, exit, err)
	}
}

func TestFileSystemsMatchStatfs(t *testing.T) {
	dir := mounted(t, "size=64m")
	out, errs, exit := run(t, FileSystemArgs(dir, "/proc", dir+"/a b", "/"))
	list, err := ParseFileSystems(out)
	must.That(t, err == nil && exit == 0 && errs == "" && len(list) == 4, "%q %q %d: %+v %v", out, errs, exit, list, err)
	want := (FileSystem{Path: dir, Type: unix.TMPFS_MAGIC, Size: 64 << 20, Free: 64 << 20})
	check.That(t, list[0] == want, "%+v, want %+v", list[0], want)
	want = (FileSystem{Path: "/proc", Type: unix.PROC_SUPER_MAGIC})
	check.That(t, list[1] == want, "%+v, want %+v", list[1], want)
	want = (FileSystem{Path: dir + "/a b", Errno: syscall.ENOENT})
	check.That(t, list[2] == want, "%+v, want %+v", list[2], want)
	var root unix.Statfs_t
	must.OK(t, unix.Statfs("/", &root))
	got := list[3]
	check.That(t, got.Type == uint64(root.Type) && got.Size == int64(root.Blocks)*root.Frsize && got.Free <= got.Size, "got %+v, statfs returned %+v", got, root)
}

func TestDirectReadSucceedsOrHasAnErrno(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	for _, size := range []int64{1, 4096, 8192} { // shorter than the read, equal, longer
		fill(t, size, file)
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		want := Direct{Taken: err == nil}
		errors.As(err, &want.Errno)
		out, _, exit := run(t, DirectArgs(file))
		got, err := ParseDirect(out)
		check.That(t, err == nil && got == want && exit == 0, "%d: %q %d: %+v %v, want %+v", size, out, exit, got, err, want)
	}
	out, _, exit := run(t, DirectArgs("/proc/version"))
	got, err := ParseDirect(out)
	check.That(t, err == nil && got == (Direct{Errno: syscall.EINVAL}) && exit == 0, "%q %d: %+v %v", out, exit, got, err)
}

func TestInvalidCommandIsRefusedInOneLine(t *testing.T) {
	long := "/" + strings.Repeat("x", 1024)
	for _, args := range [][]string{
		{"fill", "1"}, {"fill", "0", "a"}, {"fill", "-1", "a"}, {"fill", "1k", "a"}, {"fill", "", "a"}, {"fill", "1.5", "a"},
		{"fill", "9999999999999999999", "a"}, {"fill", "1", ""}, {"fill", "1", "a\nb"}, {"fill", "1", "a\x7f"}, {"fill", "1", long}, {"fill", "1", "a", ""},
		{"evict", ""}, {"evict", long}, {"fs", ""}, {"fs", "/", "a\rb"}, {"direct", ""}, {"direct", "a", "b"},
		{"hold", "0", "1"}, {"hold", "-1", "1"}, {"hold", "1M", "1"}, {"hold", "1"}, {"hold", "1", "1", "1"}, {"hold", "", "1"},
		{"hold", "1", "1."}, {"hold", "1", "."}, {"hold", "1", ".5"}, {"hold", "1", "1.2.3"}, {"hold", "1", "1.0000000000"}, {"hold", "1", "1e3"},
		{"hold", "1", "1000001"}, {"hold", "99999999999999999999", "1"}, {"hold", "900000000000000000", "1"},
		{"spin", "0", "1"}, {"spin", "1001", "1"}, {"spin", "0.5", "1"}, {"spin", "500", "-1"}, {"serve", "0"}, {"serve", "65536"}, {"serve", "80", "dance=1"}, {"serve", "80", "leak=1k"},
	} {
		out, errs, exit := run(t, append([]string{Name}, args...))
		check.That(t, exit == 2 && out == "" && strings.Count(errs, "\n") == 1 && strings.HasPrefix(errs, "tare-probe: "),
			"%.80q: %d, %q, %q", args, exit, out, errs)
	}
}

// readers are the parsers, by their names in testdata/reports.txt.
var readers = map[string]func(out string) (any, error){
	"held":    func(out string) (any, error) { return ParseHeld(out) },
	"spun":    func(out string) (any, error) { return ParseSpun(out) },
	"filled":  func(out string) (any, error) { return ParseFilled(out) },
	"systems": func(out string) (any, error) { return ParseFileSystems(out) },
	"direct":  func(out string) (any, error) { return ParseDirect(out) },
}

func TestReportsAreParsedStrictly(t *testing.T) {
	golden.Lines(t, "testdata/reports.txt", func(t *testing.T, line string) (any, error) {
		reader, quoted, _ := strings.Cut(line, " ")
		out := must.Get(strconv.Unquote(quoted))(t)
		got, err := readers[reader](out)
		fe, is := errors.AsType[*FileError](err)
		check.That(t, !is, "%q was parsed as the error %+v", out, fe)
		return got, err
	})
}

func FuzzReports(f *testing.F) {
	f.Add("tare-fs/1 ef53 4096 99 /data\ntare-fs/1 error 2 /x\n")
	f.Add("tare-fill/1 error 28 /a b\ntare-fill/1 2 3 4\n")
	f.Add("tare-hold/1 4096 12\ntare-held/1 99\n")
	f.Fuzz(func(t *testing.T, out string) {
		list, err := ParseFileSystems(out)
		check.That(t, err != nil || len(list) != 0, "%q gave no file systems and no error", out)
		for _, fs := range list {
			check.That(t, fs.Path != "" && fs.Size >= 0 && fs.Free >= 0 && (fs.Errno == 0 || fs.Size == 0), "%q gave %+v", out, fs)
		}
		h, err := ParseHeld(out)
		check.That(t, err != nil || h.Bytes > 0 && h.Filled >= 0 && h.Held >= 0, "%q gave %+v", out, h)
		got, err := ParseFilled(out)
		check.That(t, err != nil || got.Files > 0 && got.Bytes > 0 && got.Took >= 0, "%q gave %+v", out, got)
	})
}
