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

// program is what scripts/install-tests builds, in the user's cache.
const program = "tare/versitygw-1.8.0/bin/versitygw"

// serve starts the store over a folder of its own, and returns how it is reached: by an
// abstract socket, which leaves no file and takes nobody's port.
func serve(t *testing.T, key, secret string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	need.Tools(t, "versitygw, a store that speaks S3")
	cache, err := os.UserCacheDir()
	must.OK(t, err)
	socket := "@tare-" + rand.Text()
	// Without a folder of users it calls an unknown key by an error of its own. Heads of
	// objects are files beside them: not every file system has attributes.
	cmd := exec.CommandContext(t.Context(), filepath.Join(cache, program), "--port", socket, "--quiet", "--keep-alive", "--iam-dir", t.TempDir(),
		"posix", "--sidecar", t.TempDir(), t.TempDir())
	cmd.Env = []string{"ROOT_ACCESS_KEY_ID=" + key, "ROOT_SECRET_ACCESS_KEY=" + secret}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// It ends with this process, however that ends. The kernel means the thread that
	// started it, so that one has to stay.
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
	t.Cleanup(func() { // after the test's context, which ends it
		for range ended {
			continue // nobody asks any more why it ended
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	for {
		if c, err := dial(t.Context(), "", ""); err == nil {
			_ = c.Close() // nothing was said
			return dial
		}
		select {
		case err := <-ended:
			t.Fatalf("no store: %v; run scripts/install-tests tools\n%s", err, &said)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
