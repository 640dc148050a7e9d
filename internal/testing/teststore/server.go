package teststore

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// program is the path in the user's cache of the build by scripts/install-tests.
const program = "tare/versitygw-1.8.0/bin/versitygw"

// serve starts the store on its own folder and returns a way to connect: an abstract
// socket, which uses no file and no port.
func serve(t *testing.T, key, secret string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	need.Tools(t, "versitygw, a store that speaks S3")
	cache, err := os.UserCacheDir()
	must.OK(t, err)
	socket := "@tare-" + rand.Text()
	// Without a folder of users the store has a specific error for unknown keys. Object
	// metadata is in separate files, because not every file system supports extended
	// attributes.
	cmd := exec.CommandContext(t.Context(), filepath.Join(cache, program), "--port", socket, "--quiet", "--keep-alive", "--iam-dir", t.TempDir(),
		"posix", "--sidecar", t.TempDir(), t.TempDir())
	cmd.Env = []string{"ROOT_ACCESS_KEY_ID=" + key, "ROOT_SECRET_ACCESS_KEY=" + secret}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// The store exits with this process, even if it is killed. The kernel watches the
	// thread that started it, so that thread must not exit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Run()
		if t.Context().Err() == nil {
			ended <- err
		}
	}()
	t.Cleanup(func() { // runs after the end of the test's context, which ends the store
		for range ended {
			continue // no one needs its exit status any more
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	for {
		if c, err := dial(t.Context(), "", ""); err == nil {
			_ = c.Close() // nothing was sent
			return dial
		}
		select {
		case err := <-ended:
			t.Fatalf("no store: %v; run scripts/install-tests tools\n%s", err, &said)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
