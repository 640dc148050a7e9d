package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
)

// fakeKernel answers as told; its zero value allows everything to root.
type fakeKernel struct {
	uid                           int
	bpf, stats, clock, cycles, rt error
	free                          uint64
	freeErr                       error
	wait                          func()
}

func (k fakeKernel) EffectiveUID() int               { return k.uid }
func (k fakeKernel) LoadBPF() error                  { return k.bpf }
func (k fakeKernel) EnableBPFStats() error           { return k.stats }
func (k fakeKernel) OpenPerfClock() error            { return k.clock }
func (k fakeKernel) OpenPerfCycles() error           { return k.cycles }
func (k fakeKernel) SetRealtime() error              { return k.rt }
func (k fakeKernel) FreeDisk(string) (uint64, error) { return k.free, k.freeErr }
func (k fakeKernel) Wait(time.Duration) {
	if k.wait != nil {
		k.wait()
	}
}

// failure returns the error of that name, nil for none.
func failure(name string) error {
	if name == "" {
		return nil
	}
	for _, errno := range []syscall.Errno{unix.EPERM, unix.ENOENT, unix.EACCES, unix.EINVAL, unix.ENOSYS} {
		if unix.ErrnoName(errno) == name {
			return errno
		}
	}
	return errors.New(name)
}

// files are texts by their paths below a root; an empty text removes the file.
type files map[string]string

// healthy returns the root of a machine on which everything can be weighed, with some
// files changed.
func healthy(t *testing.T, changed files) machine.Root {
	t.Helper()
	root := t.TempDir()
	must.OK(t, os.CopyFS(root, os.DirFS("testdata/healthy")))
	for name, text := range changed {
		if text == "" {
			must.OK(t, os.Remove(filepath.Join(root, name)))
			continue
		}
		must.Write(t, filepath.Join(root, name), text)
	}
	return machine.Root(root)
}
