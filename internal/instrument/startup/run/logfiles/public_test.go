package logfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// summary returns one line per start: its duration, its progress and error, or its
// failure.
func summary(all []record.Start) (lines []string) {
	clock := func(at int64) string { return time.Unix(0, at).UTC().Format("15:04:05.000") }
	for _, s := range all {
		line := strings.TrimSpace(s.Target + " " + s.Name)
		switch w := s.Waiting; {
		case s.Failure != nil:
			line += ": failed: " + s.Failure.Detail
		case w != nil:
			line += fmt.Sprintf(": no end, %s since %s, %.1f s so far", w.In, clock(w.Since), float64(w.Until-w.Since)/1e9)
			if w.Stage != "" {
				line += ", stage " + w.Stage
			}
			if w.Error != "" {
				line += ", error " + w.Error
			}
		default:
			line += fmt.Sprintf(": %.2f s", float64(s.Ended-s.Began)/1e9)
		}
		for _, m := range s.Missing {
			if m.What != "no end" {
				line += ", " + m.What
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestPublicLogs checks the logs in testdata/public, which have the format of
// logs in public threads.
func TestPublicLogs(t *testing.T) {
	t.Parallel()
	const reserved = `failed to reserve sandbox name "podx-z7d7p_default_f4fc0242-4fb4-4015-a7eb-3e4a9cd73293_0": name "podx-z7d7p_default_f4fc0242-4fb4-4015-a7eb-3e4a9cd73293_0" is reserved for "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`
	for name, want := range map[string][]string{
		"one-call":                      {"containerd default/podx-z7d7p: no end, RunPodSandbox since 02:45:40.738, 0.0 s so far"},
		"call-retried":                  {"containerd default/podx-z7d7p: failed: retry, while the call since 02:45:40.738 has not returned: RunPodSandbox: " + reserved, "containerd default/podx-z7d7p: no end, RunPodSandbox since 02:45:40.738, 251.3 s so far"},
		"crio-old-sandbox":              {"cri-o kube-system/kube-apiserver-node1: 150.40 s, no begin"},
		"start-hangs":                   {"containerd default/win-0: no end, StartContainer since 16:10:23.285, 0.0 s so far"},
		"crio-create-hangs":             {"cri-o default/web-0: no end, CreateContainer since 10:00:03.000, 0.0 s so far"},
		"shim-disconnected-then-failed": {`containerd default/web-0: failed: StartContainer: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "nope": executable file not found in $PATH: unknown`},
		"kubelet-startup":               {"containerd ingress-nginx/ingress-nginx-controller-5c97fbc9bc-rsm6x: 145.00 s", "kubelet ingress-nginx/ingress-nginx-controller-5c97fbc9bc-rsm6x: 204.61 s"},
		"reverse":                       {"containerd ingress-nginx/ingress-nginx-controller-5c97fbc9bc-rsm6x: 145.00 s"},
		"kubectl-debug-ephemeral":       {"containerd added container default/web-0: 0.40 s", "containerd default/web-0: 2.50 s"},
		"execsync-probes":               {"containerd ExecSync ./probe.sh: 0.17 s"},
		"crio118":                       {"cri-o ns/pod: 5.00 s"},
		"three-greps":                   {"containerd d/other: no end, RunPodSandbox since 18:33:29.000, 0.0 s so far", "containerd d/p: 2.10 s"},
		"podman-debug":                  {"podman: 21.00 s"},
		"whole-seconds":                 {"containerd openfaas-fn/heavy-py-774b94b947-pvgfv: 1.00 s"},
		"kata-failed-dial":              {"kata: failed: the VM died 1.381s after the agent was dialled (virtiofsd quits, kata-failed-dial.txt:7); the agent was dialled for 28.62s more"},
		"docker-create-lost":            {"docker: 2.20 s"},
		"init-containerd17":             {"containerd d/web: 11.80 s"},
	} {
		t.Run(name, func(t *testing.T) {
			all := must.Get(recorded(t, "testdata/public/"+name+".txt"))(t)
			check.Equal(t, "starts", strings.Join(summary(all), "\n"), strings.Join(want, "\n"))
		})
	}
}

// TestPublicLogsOfHangsAndOtherPrograms checks other kinds of publicly posted logs.
func TestPublicLogsOfHangsAndOtherPrograms(t *testing.T) {
	golden.Cases(t, "testdata/cases/threads.txt", func(t *testing.T, text string) string {
		all := must.Get(recorded(t, written(t, t.TempDir(), "a.log", text+"\n")))(t)
		return strings.Join(summary(all), "\n")
	})
}

// judgedOf judges a log.
func judgedOf(t *testing.T, path string) (*record.Record, *startup.Judgement) {
	t.Helper()
	r := must.Get(Open(t.Context(), Logs{Files: []string{path}}))(t)
	defer r.Close()
	rec, j, err := r.Record(t.Context(), record.Header{Experiment: startup.Name, Plan: json.RawMessage(`{}`)}, Writer{
		Progress: func(string, time.Duration, time.Duration) {}, Write: func(any) error { return nil },
	})
	must.OK(t, err)
	return rec, j
}

func TestStartsWithoutEndAreInNoMedian(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		ended, noEnd int
		median       float64
		found        string
	}{
		"good12":      {12, 0, 5.01, ""},
		"good5-hang7": {5, 7, 4.98, "7 of 12 starts have no end: waiting in StartContainer since 16:11:03.285 (the first; the longest 3 min 22 s so far), default/win-2 at good5-hang7.txt:11"},
	} {
		_, j := judgedOf(t, "testdata/public/"+name+".txt")
		got := &j.Targets[0]
		if got.Starts != want.ended || got.NoEnd != want.noEnd || fmt.Sprintf("%.2f", got.Wall.Value/1e9) != fmt.Sprint(want.median) {
			t.Errorf("%s: %d ended, %d without end, median %v", name, got.Starts, got.NoEnd, got.Wall.Value)
		}
		found := ""
		for _, f := range j.Found {
			if f.Level == finding.Error {
				found += f.Message
			}
		}
		check.Equal(t, name, found, want.found)
	}
}

func TestKubeletDurationsAreUsed(t *testing.T) {
	t.Parallel()
	all := must.Get(recorded(t, "testdata/public/kubelet-startup.txt"))(t)
	of := slices.IndexFunc(all, func(s record.Start) bool { return s.Target == "kubelet" })
	for name, seconds := range map[string]string{"pod created → image pull called": "44.722", "image pull": "143.611", "image pulled → pod seen running": "1.030", "pod seen running → pod observed running": "15.249"} {
		i := slices.IndexFunc(all[of].Spans, func(s record.Span) bool { return s.Name == name })
		if i < 0 || fmt.Sprintf("%.3f", float64(all[of].Spans[i].Ended-all[of].Spans[i].Began)/1e9) != seconds {
			t.Errorf("%s: %+v", name, all[of].Spans)
		}
	}
	rec, _ := judgedOf(t, "testdata/public/kubelet-startup.txt")
	check.Equal(t, "forms", rec.Logs.Forms, map[string]int64{"containerd": 8, "kubelet": 1})
}

func TestSecondPrecisionIsReported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"whole-seconds", "podman-debug"} {
		rec, _ := judgedOf(t, "testdata/public/"+name+".txt")
		if len(rec.Logs.Missing) != 1 || rec.Logs.Missing[0].What != "whole seconds" || !strings.Contains(rec.Logs.Missing[0].Detail, "±1 s") {
			t.Errorf("%s: %+v", name, rec.Logs.Missing)
		}
	}
}

// envelopes are the prefixes that tools add to log lines.
var envelopes = map[string]func(lines []string) string{
	"Loki response": func(lines []string) string {
		var values [][]string
		for i, l := range slices.Backward(lines) {
			values = append(values, []string{fmt.Sprint(1752166937000000000 + i), l})
		}
		return object(map[string]any{"status": "success", "data": map[string]any{"result": []any{map[string]any{"stream": map[string]string{"job": "x"}, "values": values}}}})
	},
	"logcli, newest line first": func(lines []string) string {
		slices.Reverse(lines)
		return each(lines, func(l string) string {
			return object(map[string]any{"labels": map[string]string{"job": "x"}, "line": l})
		})
	},
	"CloudWatch, indented": func(lines []string) string {
		var events []any
		for i, l := range lines {
			events = append(events, map[string]any{"timestamp": 1752166937000 + i, "message": l})
		}
		text, _ := json.MarshalIndent(map[string]any{"events": events}, "", "    ")
		return string(text)
	},
	"GCP": func(lines []string) string {
		return each(lines, func(l string) string {
			return object(map[string]any{"jsonPayload": map[string]any{"MESSAGE": l, "SYSLOG_IDENTIFIER": "containerd"}, "timestamp": "2025-07-10T17:02:18Z"})
		})
	},
	"Kibana": func(lines []string) string {
		return each(lines, func(l string) string {
			return object(map[string]any{"_source": map[string]any{"@timestamp": "2025-07-10T17:02:18Z", "message": l}})
		})
	},
	"fluent-bit": func(lines []string) string {
		return each(lines, func(l string) string {
			return object(map[string]any{"date": 1752166937.5, "log": "2025-07-10T17:02:18.1Z stderr F " + l})
		})
	},
	"JSON array": func(lines []string) string {
		return "[\n" + strings.TrimSuffix(each(lines, func(l string) string { return object(map[string]any{"log": l}) + "," }), ",\n") + "\n]\n"
	},
	"journalctl -o json-sse": func(lines []string) string {
		return each(lines, func(l string) string {
			return "data: " + object(map[string]any{"__CURSOR": "x", "__REALTIME_TIMESTAMP": "1752166937000000", "SYSLOG_IDENTIFIER": "containerd", "MESSAGE": l}) + "\n"
		})
	},
	"jq, of Loki": func(lines []string) string {
		return each(lines, func(l string) string {
			text, _ := json.MarshalIndent(map[string]any{"labels": map[string]string{"job": "x"}, "line": l}, "", "  ")
			return string(text)
		})
	},
	"jq, of containerd's JSON": func(lines []string) string {
		return each(lines, func(l string) string {
			of := map[string]any{"level": "info"}
			_, of["time"], _ = strings.Cut(l[:strings.Index(l, `" level`)], `"`)
			_, message, _ := strings.Cut(l, "msg=")
			message, id, _ := strings.Cut(message, " id=")
			if of["msg"], _ = strconv.Unquote(message); id != "" {
				of["id"], _, _ = strings.Cut(id, " ")
			}
			text, _ := json.MarshalIndent(of, "", "  ")
			return string(text)
		})
	},
	"talosctl":                  prefixed("172.20.0.2: "),
	"stern":                     prefixed("containerd-x7 containerd "),
	"kubectl logs --prefix":     prefixed("[pod/containerd-x7/containerd] "),
	"docker compose logs":       prefixed("containerd-1  | "),
	"CRI log file":              prefixed("2025-07-10T17:02:18.123456789Z stderr F "),
	"kubectl logs --timestamps": prefixed("2025-07-10T17:02:18.123456789Z "),
	"quoted text":               prefixed("> "),
	"grep":                      prefixed("/var/log/syslog:12:Jul 10 17:02:17 node containerd[7]: "),
}

func prefixed(with string) func(lines []string) string {
	return func(lines []string) string { return each(lines, func(l string) string { return with + l }) }
}

func each(lines []string, of func(string) string) (text string) {
	for _, l := range lines {
		text += of(l) + "\n"
	}
	return text
}

func object(of map[string]any) string {
	text, _ := json.Marshal(of)
	return string(text)
}

func TestLinesAreParsedInAnyEnvelope(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(must.Read(t, "testdata/public/init-containerd17.txt")), "\n")
	for name, envelope := range envelopes {
		path := filepath.Join(t.TempDir(), "a.log")
		must.OK(t, os.WriteFile(path, []byte(envelope(slices.Clone(lines))), 0o644))
		all, err := recorded(t, path)
		check.Error(t, err, "")
		check.Equal(t, name, strings.Join(summary(all), "\n"), "containerd d/web: 11.80 s")
	}
}
