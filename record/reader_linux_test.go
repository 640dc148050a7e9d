package record

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestUnreadableRecordIsAPermissionError(t *testing.T) {
	need.Root(t)
	path := filepath.Join(t.TempDir(), "run.jsonl")
	must.OK(t, os.WriteFile(path, nil, 0o600))
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread runs as another user and exits with its goroutine
		err := syscall.Setfsuid(65534)
		if err == nil {
			_, err = Open(path)
		}
		opened <- err
	}()
	check.Error(t, <-opened, "permission denied; read it as its owner, or with sudo")
}
