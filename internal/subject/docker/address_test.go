package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

const arch = runtime.GOARCH

// configured creates a configuration folder of the docker command with the context "c".
func configured(t *testing.T, current, meta string) string {
	t.Helper()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("c"))
	folder := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]))
	must.OK(t, os.MkdirAll(folder, 0o755))
	for path, text := range map[string]string{
		filepath.Join(dir, "config.json"): `{"currentContext":"` + current + `"}`, filepath.Join(folder, "meta.json"): meta,
	} {
		must.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestDaemonAddressMatchesTheDockerCommand(t *testing.T) {
	for _, name := range passed {
		t.Setenv(name, "")
	}
	const meta = `{"Name":"c","Endpoints":{"docker":{"Host":"unix:///c.sock"}}}`
	current, plain := configured(t, "c", meta), configured(t, "", meta)
	for name, c := range map[string]struct {
		e    subject.Engine
		want string
	}{
		"defaults":                {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": plain}}, "unix:///var/run/docker.sock"},
		"no configuration":        {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": "/no/such"}}, "unix:///var/run/docker.sock"},
		"address":                 {subject.Engine{Address: "tcp://h:1", Env: map[string]string{"DOCKER_HOST": "unix:///e.sock"}}, "tcp://h:1"},
		"socket path":             {subject.Engine{Address: "/a.sock"}, "unix:///a.sock"},
		"DOCKER_HOST":             {subject.Engine{Env: map[string]string{"DOCKER_HOST": "unix:///e.sock", "DOCKER_CONFIG": current}}, "unix:///e.sock"},
		"current context":         {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": current}}, "unix:///c.sock"},
		"DOCKER_CONTEXT":          {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "c", "DOCKER_CONFIG": plain}}, "unix:///c.sock"},
		"default context by name": {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "default", "DOCKER_CONFIG": current}}, "unix:///var/run/docker.sock"},
		"argument":                {subject.Engine{Args: []string{"-H", "unix:///h.sock"}}, "unix:///h.sock"},
		"argument with =":         {subject.Engine{Args: []string{"--host=unix:///h.sock"}}, "unix:///h.sock"},
		"context argument":        {subject.Engine{Args: []string{"--context", "c"}, Env: map[string]string{"DOCKER_CONFIG": plain, "DOCKER_HOST": "unix:///e.sock"}}, "unix:///c.sock"},
		"missing context":         {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "no", "DOCKER_CONFIG": plain}}, ""},
		"invalid configuration":   {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": configured(t, `"`, meta)}}, ""},
		"invalid context":         {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": configured(t, "c", "x")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := find(c.e)
			check.That(t, (err != nil) == (c.want == "") && (err != nil || a.host == c.want), "got %q, %v; want %q", a.host, err, c.want)
		})
	}
}

func TestConfigurationInTheWorkingFolderIsIgnored(t *testing.T) {
	for _, name := range append([]string{"HOME"}, passed...) {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	must.OK(t, os.Rename(configured(t, "c", `{"Endpoints":{"docker":{"Host":"tcp://elsewhere:1"}}}`), filepath.Join(dir, ".docker")))
	a, err := find(subject.Engine{})
	check.That(t, err != nil || a.host != "tcp://elsewhere:1", "%+v", a)
}

func TestInvalidCertificatesAreRefused(t *testing.T) {
	dir := t.TempDir()
	e := subject.Engine{Address: "tcp://h:1", Env: map[string]string{"DOCKER_CERT_PATH": dir, "DOCKER_TLS_VERIFY": "1"}}
	a, err := find(e)
	check.That(t, err == nil && a.secure != nil && !a.secure.InsecureSkipVerify && tlsKind(a.secure) == "verified",
		"an empty folder: %+v, %v", a, err)
	e.Env["DOCKER_TLS_VERIFY"] = ""
	check.Equal(t, "unverified", tlsKind(must.Get(find(e))(t).secure), "unverified")
	must.OK(t, os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("rubbish"), 0o644))
	e.Env["DOCKER_TLS_VERIFY"] = "1"
	_, err = find(e)
	check.Error(t, err, "read the certificates of "+dir)
}

func TestOversizedReplyIsAnError(t *testing.T) {
	i := must.Get(image.Probe())(t)
	long := strings.Repeat(" ", maxReply) // white space is valid in JSON
	e, f := serve(t, map[string]string{"GET /images/" + i.Ref + "/json": fmt.Sprintf(`{"Id":%q,"Comment":%q}`, i.ID, long)})
	tg := &driver{Target: weigh(t, e, "", viaAPI), image: i, env: subject.Env{RunID: "r"}}
	_, err := tg.hasImage(t.Context())
	check.Error(t, err, "exceeds 4 MiB")
	f.list = func() string { return "[" + long + "]" }
	_, err = tg.List(t.Context())
	check.Error(t, err, "exceeds 4 MiB")
	f.list = func() string { return "[" + long[2:] + "]" }
	check.Equal(t, "reply of the maximum length", len(must.Get(tg.List(t.Context()))(t)), 0)
}

func TestImageQueryHasItsOwnTimeout(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]", "GET /images/json": "hang"})
	tg := weigh(t, e, "", viaAPI)
	began := time.Now()
	_, err := tg.Clean(context.Background(), "r", true)
	took := time.Since(began)
	check.That(t, err != nil && strings.Contains(err.Error(), "list the workload's images") && took <= patience+time.Minute, "after %v: %v", took, err)
}
