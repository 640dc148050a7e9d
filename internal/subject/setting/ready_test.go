package setting_test

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestInvalidReadyIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[setting.Ready]setting.Readiness{
		"tcp:8080":                          {By: "tcp", Port: 8080},
		"http:8080":                         {By: "http", Port: 8080, Path: "/", Status: 200},
		"http:80/healthz=204":               {By: "http", Port: 80, Path: "/healthz", Status: 204},
		"http:80/a?b=c":                     {By: "http", Port: 80, Path: "/a?b=c", Status: 200},
		"http:80/a?b=1=200":                 {By: "http", Port: 80, Path: "/a?b=1", Status: 200},
		"exec:/bin/check --port 80":         {By: "exec", Command: []string{"/bin/check", "--port", "80"}},
		`exec:/bin/sh -c "a 'b' | c" $HOME`: {By: "exec", Command: []string{"/bin/sh", "-c", "a 'b' | c", "$HOME"}},
		"exec:/bin/grep -q #ready a#b":      {By: "exec", Command: []string{"/bin/grep", "-q", "#ready", "a#b"}},
		"file:/run/it:is/ready":             {By: "file", Path: "/run/it:is/ready"},
	} {
		check.Equal(t, text, must.Get(text.Parse())(t), want)
	}
	if got, err := setting.Ready("log:ready: [0-9]+ ms$").Parse(); err != nil || !got.Pattern.MatchString("x ready: 17 ms") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []setting.Ready{
		"", "tcp", "8080", "udp:53", "tcp:", "tcp:0", "tcp:65536", "tcp:-1", "tcp: 80", "tcp:80/x", "TCP:80", "http:/x", "http:80/x=700", "http:80/a b",
		"http:80#x", "http:80/a\r\nHost: b", "log:", "log:(", "log:a{1001}", "log:\x1b", "exec:", "exec:ls /", `exec:/bin/sh -c "a`, "file:x", "file:/a/../b", "file:/a/",
		setting.Ready("log:" + strings.Repeat("a", 1025)), setting.Ready("exec:/a" + strings.Repeat(" a", 100)),
	} {
		if err := text.Check(); err == nil || !strings.Contains(err.Error(), setting.ReadyForms) || len(err.Error()) > 400 {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func TestProbePathMatchesTheProbe(t *testing.T) {
	check.Equal(t, "path of the probe", setting.Probe, probe.Name)
}
