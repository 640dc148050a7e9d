package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
)

const arch = runtime.GOARCH

// configured makes a configuration folder of the docker command, with a context
// "c".
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

func TestADaemonIsLookedForWhereTheCommandLooks(t *testing.T) {
	for _, name := range passed {
		t.Setenv(name, "")
	}
	const meta = `{"Name":"c","Endpoints":{"docker":{"Host":"unix:///c.sock"}}}`
	current, plain := configured(t, "c", meta), configured(t, "", meta)
	for name, c := range map[string]struct {
		e    subject.Engine
		want string
	}{
		"nothing said":                 {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": plain}}, "unix:///var/run/docker.sock"},
		"no configuration":             {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": "/no/such"}}, "unix:///var/run/docker.sock"},
		"an address":                   {subject.Engine{Address: "tcp://h:1", Env: map[string]string{"DOCKER_HOST": "unix:///e.sock"}}, "tcp://h:1"},
		"a socket's path":              {subject.Engine{Address: "/a.sock"}, "unix:///a.sock"},
		"DOCKER_HOST":                  {subject.Engine{Env: map[string]string{"DOCKER_HOST": "unix:///e.sock", "DOCKER_CONFIG": current}}, "unix:///e.sock"},
		"the current context":          {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": current}}, "unix:///c.sock"},
		"DOCKER_CONTEXT":               {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "c", "DOCKER_CONFIG": plain}}, "unix:///c.sock"},
		"the default context by name":  {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "default", "DOCKER_CONFIG": current}}, "unix:///var/run/docker.sock"},
		"an argument":                  {subject.Engine{Args: []string{"-H", "unix:///h.sock"}}, "unix:///h.sock"},
		"an argument in one":           {subject.Engine{Args: []string{"--host=unix:///h.sock"}}, "unix:///h.sock"},
		"an argument names a context":  {subject.Engine{Args: []string{"--context", "c"}, Env: map[string]string{"DOCKER_CONFIG": plain, "DOCKER_HOST": "unix:///e.sock"}}, "unix:///c.sock"},
		"a context that is not there":  {subject.Engine{Env: map[string]string{"DOCKER_CONTEXT": "no", "DOCKER_CONFIG": plain}}, ""},
		"a configuration that is none": {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": configured(t, `"`, meta)}}, ""},
		"a context that is none":       {subject.Engine{Env: map[string]string{"DOCKER_CONFIG": configured(t, "c", "x")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := find(c.e)
			if (err != nil) != (c.want == "") || err == nil && a.host != c.want {
				t.Errorf("got %q, %v; want %q", a.host, err, c.want)
			}
		})
	}
}

func TestNoDaemonIsTakenFromWhereTareHappensToRun(t *testing.T) {
	for _, name := range append([]string{"HOME"}, passed...) {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	must.OK(t, os.Rename(configured(t, "c", `{"Endpoints":{"docker":{"Host":"tcp://elsewhere:1"}}}`), filepath.Join(dir, ".docker")))
	if a, err := find(subject.Engine{}); err == nil && a.host == "tcp://elsewhere:1" {
		t.Errorf("%+v", a)
	}
}

func TestCertificatesAreReadOrRefused(t *testing.T) {
	dir := t.TempDir()
	e := subject.Engine{Address: "tcp://h:1", Env: map[string]string{"DOCKER_CERT_PATH": dir, "DOCKER_TLS_VERIFY": "1"}}
	a, err := find(e)
	if err != nil || a.secure == nil || a.secure.InsecureSkipVerify || tlsKind(a.secure) != "verified" {
		t.Errorf("an empty folder: %+v, %v", a, err)
	}
	e.Env["DOCKER_TLS_VERIFY"] = ""
	if a, err = find(e); err != nil || tlsKind(a.secure) != "unverified" {
		t.Errorf("unverified: %+v, %v", a, err)
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("rubbish"), 0o644))
	e.Env["DOCKER_TLS_VERIFY"] = "1"
	if _, err = find(e); err == nil || !strings.Contains(err.Error(), "read the certificates of "+dir) {
		t.Errorf("rubbish: %v", err)
	}
}

func TestSSHIsToldNothingThatItsShellCouldMistake(t *testing.T) {
	for address, want := range map[string]string{
		"ssh://h":                 "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -- h docker system dial-stdio",
		"ssh://u@h:22/run/d.sock": "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -l u -p 22 -- h docker --host unix:///run/d.sock system dial-stdio",
		"ssh://u@h/$(reboot)":     "",
		"ssh://-u@h":              "",
		"ssh://h?x=y":             "",
		"ssh://":                  "",
		"ssh://h:notaport/":       "",
		"ssh://[::1]:22/":         "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -p 22 -- ::1 docker system dial-stdio",
	} {
		args, err := sshCommand(address)
		if got := strings.Join(args, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

func TestWhatSSHSaysIsTold(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_, err := New(t.Context(), "docker/runc", "runc", viaAPI, subject.Engine{Address: "ssh://h"})
	if err == nil || !strings.Contains(err.Error(), "Permission denied (publickey)") {
		t.Errorf("got %v", err)
	}
}
