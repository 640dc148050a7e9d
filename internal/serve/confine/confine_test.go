package confine

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// TestConfinedServerOnlyReadsItsFolder runs in a separate process, because the
// confinement cannot be undone.
func TestConfinedServerOnlyReadsItsFolder(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("TARE_TEST_CONFINE"); dir != "" {
		confined(t, dir)
		return
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		t.Skip("this kernel has no Landlock")
	}
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), nil, 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConfinedServerOnlyReadsItsFolder$")
	cmd.Env = append(os.Environ(), "TARE_TEST_CONFINE="+dir)
	out, err := cmd.CombinedOutput()
	check.That(t, err == nil, "%v\n%s", err, out)
}

// connect opens a TCP connection without package net, which would require cgo here.
func connect() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return unix.Connect(s, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}})
}

func confined(t *testing.T, dir string) {
	t.Helper()
	abi, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	root := must.Get(os.OpenRoot(dir))(t)
	must.OK(t, To(dir, filepath.Join(dir, "nothing")))
	var threads sync.WaitGroup
	for range 8 { // each may run on another thread
		threads.Go(func() {
			runtime.LockOSThread()
			_, err := os.ReadFile("/etc/passwd")
			check.That(t, errors.Is(err, fs.ErrPermission), "read a file outside of the folder: %v", err)
			check.Is(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o600), fs.ErrPermission)
			check.Is(t, os.Chown(dir, 1, 1), fs.ErrPermission)
			err = connect()
			check.That(t, errors.Is(err, unix.EACCES) || abi < 4, "connect: %v", err)
			_, err = root.ReadFile("a.jsonl")
			check.Error(t, err, "")
		})
	}
	threads.Wait()
}
