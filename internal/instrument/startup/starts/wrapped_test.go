package starts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

// The same pod, as people paste and collect its log.
func TestAPodIsReadInWhateverItsLogIsWrapped(t *testing.T) {
	pod := podOfContainerd("")
	each := func(wrap func(n int, line string) string) (out string) {
		for line := range strings.Lines(pod) {
			out += wrap(strings.Count(out, "\n")+1, strings.TrimSuffix(line, "\n")) + "\n"
		}
		return out
	}
	parts := regexp.MustCompile(`^time="([^"]*)" level=info msg="(.*)" $`)
	terminal := func(at func(stamp string) string) string {
		return each(func(_ int, line string) string {
			m := parts.FindStringSubmatch(line)
			return fmt.Sprintf("INFO[%s] %-44s ", at(m[1]), strings.ReplaceAll(m[2], `\"`, `"`))
		})
	}
	since := func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		must.OK(t, err)
		return fmt.Sprintf("%04d", int(at.Sub(time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)).Seconds()))
	}
	for name, text := range map[string]string{
		"as it is":                        pod,
		"grep -n of several files":        each(func(n int, line string) string { return fmt.Sprintf("logs/containerd.log:%d:%s", n, line) }),
		"grep -n of one":                  each(func(n int, line string) string { return fmt.Sprintf("%d:%s", n, line) }),
		"without the quotes' backslashes": strings.ReplaceAll(pod, `\"`, `"`),
		"for a terminal, with dates":      terminal(func(stamp string) string { return stamp }),
		"in a terminal's colours":         strings.ReplaceAll(terminal(func(stamp string) string { return stamp }), "INFO[", "\x1b[37mDEBU\x1b[0m["),
		"for a terminal, whole seconds":   terminal(since),
		"docker's json-file": each(func(_ int, line string) string {
			text, err := json.Marshal(map[string]string{"log": line + "\n", "stream": "stderr", "time": "2026-01-02T03:04:09Z"})
			must.OK(t, err)
			return string(text)
		}),
	} {
		s := one(t, "log", text)
		if s.Target != "containerd" || (s.Ended-s.Began)/1e6 != 1000 || s.Name != "n/a" || len(s.Containers) != 2 || tookOf(&s, "StartContainer") == 0 && !strings.Contains(name, "whole") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
