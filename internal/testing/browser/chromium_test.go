package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
)

// patience is a timeout that lets a test fail instead of hanging.
const patience = time.Minute

func TestMain(m *testing.M) {
	code := m.Run()
	if running != nil {
		if err := running.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// chromium is the browser shared by all tests. It is controlled by the DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/) over two pipes instead of a port.
// No one else can connect, and it exits when the pipes are closed, even if the test is
// killed.
type chromium struct {
	cmd    *exec.Cmd
	dir    string // its profile and all other files it writes
	stderr bytes.Buffer
	ended  chan struct{}

	sending sync.Mutex
	in      *os.File

	mu    sync.Mutex
	last  int
	calls map[int]chan<- message
	tabs  map[string]*tab // by session and by target
}

// message is a command, a reply or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

var (
	running *chromium
	started = sync.OnceValues(start)
)

// start starts the browser below a shell that removes its files after it exits, because
// the test may be gone by then.
func start() (*chromium, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("no browser: %w; run scripts/install-tests browser, or install Chromium", err)
	}
	dir, err := os.MkdirTemp("", "tare-chromium-")
	if err != nil {
		return nil, err
	}
	// Without these settings, a page with a slow response may save only one file before
	// the browser asks for permission.
	settings := filepath.Join(dir, "profile", "Default")
	if err := errors.Join(os.MkdirAll(settings, 0o700), os.WriteFile(filepath.Join(settings, "Preferences"),
		[]byte(`{"profile": {"default_content_setting_values": {"automatic_downloads": 1}}}`), 0o600)); err != nil {
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &chromium{dir: dir, in: in, ended: make(chan struct{}), calls: map[int]chan<- message{}, tabs: map[string]*tab{}}
	b.cmd = exec.Command("sh", "-c", `"$@"; rm -rf "$0"`, dir, program,
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--disable-breakpad",
		"--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
		// Draw background pages as well.
		"--disable-renderer-backgrounding", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows")
	b.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8", "TZ=UTC"}
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4, as the flag requires
	b.cmd.Stderr = &b.stderr
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	theirIn.Close()
	theirOut.Close()
	running = b
	go b.listen(bufio.NewReader(out))
	return b, nil
}

// listen passes every reply to its caller and every event to its tab.
func (b *chromium) listen(r *bufio.Reader) {
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		waiting, of := b.calls[m.ID], b.tabs[m.Session]
		delete(b.calls, m.ID)
		if m.Method == "Browser.downloadWillBegin" || m.Method == "Browser.downloadProgress" {
			for _, of := range b.tabs {
				of.download(m)
			}
		}
		b.mu.Unlock()
		switch {
		case waiting != nil:
			waiting <- m
		case of != nil && m.Method != "":
			of.event(m)
		}
	}
	_ = b.cmd.Wait()
	close(b.ended)
}

// call sends a command to a session, or to the browser if there is none, and waits for
// the reply.
func (b *chromium) call(ctx context.Context, session, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	reply := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.calls[id] = reply
	b.mu.Unlock()
	text, err = json.Marshal(message{ID: id, Session: session, Method: method, Params: text})
	if err == nil {
		b.sending.Lock()
		_, err = b.in.Write(append(text, 0))
		b.sending.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.ended:
		return fmt.Errorf("%s: the browser ended, %v: %s", method, b.cmd.ProcessState, &b.stderr)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// end closes the browser and waits until nothing is left of it.
func (b *chromium) end() error {
	b.in.Close()
	var err error
	select {
	case <-b.ended:
	case <-time.After(patience):
		err = errors.New("the browser did not end by itself")
		_ = unix.Kill(-b.cmd.Process.Pid, unix.SIGKILL)
		<-b.ended
	}
	return errors.Join(err, os.RemoveAll(b.dir)) // files written by its last processes
}

// Checks that violations are detected, so that a page without findings is meaningful.
func TestViolationsAreDetected(t *testing.T) {
	t.Parallel()
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; img-src *">`
	for name, c := range map[string]struct{ html, want string }{
		"request":                         {`<img src="http://127.0.0.1:9/x.png">`, "a request for http://127.0.0.1:9/x.png"},
		"uncaught exception":              {`<script>undefined.x</script>`, "an exception"},
		"unhandled rejection":             {`<script>Promise.reject(new Error('lost'))</script>`, "lost"},
		"console warning":                 {`<script>console.warn('beware')</script>`, "beware"},
		"dialog":                          {`<script>alert('hello')</script>`, "a dialog: hello"},
		"eval forbidden by the policy":    {policy + `<script>try { eval('1') } catch {}</script>`, "policy: script-src"},
		"style forbidden by the policy":   {policy + `<p style="color: red">x</p>`, "policy: style-src"},
		"handler forbidden by the policy": {strings.Replace(policy, "'unsafe-inline'", "'none'", 1) + `<p onclick="x()">x</p>`, "policy: script-src-attr"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t)
			p.show("bad", `<!doctype html><title>x</title>`+c.html)
			p.run(painted, nil)
			check.Contains(t, "found", strings.Join(p.faults(), "\n"), c.want)
		})
	}
	t.Run("violations of axe-core and overflow", func(t *testing.T) {
		t.Parallel()
		p := newTab(t)
		p.resize(phone)
		p.show("bad", `<!doctype html><meta name="viewport" content="width=device-width"><title>x</title><p style="color: #ccc">pale<div style="width: 600px">wide</div>`)
		found := strings.Join(p.violations(), "\n")
		check.That(t, strings.Contains(found, "color-contrast") && strings.Contains(found, "html-has-lang"), "found %q", found)
		check.That(t, p.overflow() != "", "no overflow of 600 px in 390")
	})
}
