package oci

import (
	"os"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestIdentifyUsesTheVersionOutput(t *testing.T) {
	for _, c := range []struct{ banner, flavour, version, spec string }{
		{"runc version 1.1.5+ds1\ncommit: x\nspec: 1.0.2-dev\n", "runc", "1.1.5+ds1", "1.0.2"},
		{"crun version 1.8.1\ncommit: x\nrundir: /run/crun\nspec: 1.0.0\n+SYSTEMD\n", "crun", "1.8.1", "1.0.0"},
		{"youki version: 0.7.0\ncommit: x\nspec: 1.1.0\n", "youki", "0.7.0", "1.0.2"},
		{"runsc version release-20260101.0\nspec: 1.2.1\n", "runsc", "release-20260101.0", "1.0.2"},
		{"something 2.0\n", "mine", "2.0", "1.0.2"},
		{"true (GNU coreutils) 9.1\n", "mine", "9.1", "1.0.2"},
		{"kata-runtime  : 3.2.0\n", "mine", "3.2.0", "1.0.2"},
		{"mine\n", "mine", "", "1.0.2"},
		{"", "mine", "", "1.0.2"},
		{"spec: 0.1.x\n", "mine", "0.1.x", "1.0.2"},
		{"runc version 9\nspec: 0.9.9\n", "runc", "9", "0.9.9"},
	} {
		f, version := identify(c.banner, "mine")
		check.That(t, f.name == c.flavour && version == c.version && specVersion(c.banner) == c.spec,
			"%q: %s %q, spec %s", c.banner, f.name, version, specVersion(c.banner))
	}
}

func TestInvalidStatesAreRefused(t *testing.T) {
	good := `{"ociVersion":"1.0.2","id":"x","status":"running","pid":12,"bundle":"/b","unknown":[1]}`
	s, err := parseState(good, "x")
	check.That(t, err == nil && s.Pid == 12 && s.Status == "running", "%+v %v", s, err)
	_, err = parseState(`{"id":"x","status":"stopped","pid":-1}`, "x")
	check.That(t, err == nil, "stopped container of runsc: %v", err)
	for name, bad := range map[string]string{
		"nothing":          "",
		"other container":  `{"id":"y","status":"running","pid":1}`,
		"unknown status":   `{"id":"x","status":"great","pid":1}`,
		"impossible PID":   `{"id":"x","status":"running","pid":99999999}`,
		"PID as text":      `{"id":"x","status":"running","pid":"1"}`,
		"two objects":      good + good,
		"truncated":        good[:20],
		"list":             "[]",
		"escape sequences": "\x1b[2J" + good,
		"time before JSON": "12:00 " + good,
	} {
		s, err := parseState(bad, "x")
		check.That(t, err != nil, "%s was parsed as %+v", name, s)
	}
}

func FuzzParseState(f *testing.F) {
	f.Add(`{"id":"x","status":"running","pid":12}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseState(text, "x")
		check.That(t, err != nil || s.ID == "x" && s.Pid >= -1, "%q gave %+v", text, s)
	})
}

func TestProgramThatAcceptsAnyArgumentIsRefused(t *testing.T) {
	need.Root(t)
	_, err := New(t.Context(), "x", "/bin/true")
	check.Error(t, err, "/bin/true is not an OCI runtime")
}

func TestNonExecutableFileIsUnavailable(t *testing.T) {
	_, err := New(t.Context(), "x", "/etc/passwd")
	check.Error(t, err, "NAME=PATH")
}

func FuzzIdentify(f *testing.F) {
	f.Add("runc version 1.1.5\nspec: 1.0.2\n")
	f.Fuzz(func(t *testing.T, text string) {
		identify(text, "x")
		v := specVersion(text)
		check.That(t, v != "", "no spec version for %q", text)
	})
}

func TestInvalidPidsAreRefused(t *testing.T) {
	check.Equal(t, "pid", must.Get(parsePid("4711\n"))(t), 4711)
	for _, bad := range []string{"", "0", "1", "-1", "12 13", "4194305", "x", "\x1b[2J12", "99999999999999999999"} {
		pid, err := parsePid(bad)
		check.That(t, err != nil, "%q was parsed as %d", bad, pid)
	}
}

func FuzzParsePid(f *testing.F) {
	f.Add("4711\n")
	f.Fuzz(func(t *testing.T, text string) {
		pid, err := parsePid(text)
		check.That(t, err != nil || pid > 1 && pid <= 1<<22, "%q gave %d", text, pid)
	})
}

func TestBundleIsReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bundle")
	must.OK(t, writeBundle(dir, &specs.Spec{}))
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "config.json"): 0o600} {
		check.Equal(t, "mode", must.Get(os.Stat(path))(t).Mode().Perm(), want)
	}
}
