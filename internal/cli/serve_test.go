package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestServeShowsAFolderUntilInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stored(t, dir, "docker/runc", false)
	kept := filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(kept, []byte("0123456789abcdef\n"), 0o600))
	for name, test := range map[string]struct {
		flags       []string
		query, says string
	}{
		"loopback":          {nil, "", ""},
		"token from a file": {[]string{"--token-file", kept}, "?token=0123456789abcdef", ""},
		"explicit address":  {[]string{"--listen", "127.0.0.1:0"}, "", "anyone on the network path"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		read, write := io.Pipe()
		var stderr bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- Execute(ctx, append([]string{"serve", dir}, test.flags...), Streams{Out: write, Err: &stderr})
		}()
		at := must.Get(bufio.NewReader(read).ReadString('\n'))(t)
		at = strings.TrimSpace(at)
		if !strings.HasPrefix(at, "http://127.0.0.1:") || (test.query == "") != strings.Contains(at, "?token=") {
			t.Errorf("%s: printed as %q", name, at)
		}
		jar, _ := cookiejar.New(nil)                                         // never fails
		answer := must.Get((&http.Client{Jar: jar}).Get(at + test.query))(t) //nolint:bodyclose // closed below
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.Request.URL.RawQuery != "" || !strings.Contains(string(text), "docker-runc.jsonl") {
			t.Errorf("%s: %v, %s\n%s", name, err, answer.Request.URL, text)
		}
		interrupt()
		if got := <-code; got != ExitDone || !strings.Contains(stderr.String(), test.says) || test.says == "" && stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %s", name, got, &stderr)
		}
	}
}

func TestServeRefusesInsecureSettings(t *testing.T) {
	place(t)
	const good = "0123456789abcdef"
	for name, text := range map[string]string{"short": "abc", "words": "0123456789 abcdef", "good": good, "open": good} {
		must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	must.OK(t, os.Chmod("open", 0o644))
	refusals(t, "serve")
}

func TestTokenFileOfAnotherUserIsRefused(t *testing.T) {
	need.Root(t)
	theirs := filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(theirs, []byte("0123456789abcdef"), 0o600))
	must.OK(t, os.Chown(theirs, 2002, 2002))
	ends(t, ExitUsage, theirs+" is owned by uid 2002, who can read the token; copy it", "serve", t.TempDir(), "--token-file", theirs)
}

func TestTopPrintsOneObjectAndEnds(t *testing.T) {
	code, out, stderr := tare(t, "top", "--once", "--interval", "100ms", "--format", "json")
	var v struct {
		Schema    int
		Node      struct{ CPUs int }
		Sandboxes []any
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != ExitDone || v.Schema != 1 || v.Node.CPUs < 1 || v.Sandboxes == nil {
		t.Errorf("exit %d: %v: %s%s", code, err, out, stderr)
	}
}
