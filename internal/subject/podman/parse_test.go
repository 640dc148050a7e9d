package podman

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

func TestContainersAreReadFromInspect(t *testing.T) {
	running := cli.State{Name: "a", ID: "1", Status: cli.Running, Said: "running", Pid: 7, Monitor: 6, Runtime: "crun", Log: "/l/ctr.log"}
	for _, c := range []struct {
		name, text string
		want       []cli.State // nil: an error
	}{
		{"a running one of version 4", `[{"Id":"1","Name":"a","OCIRuntime":"crun","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file","Path":"/l/ctr.log"}}}]`, []cli.State{running}},
		{"a running one of version 3", `[{"Id":"1","Name":"a","OCIRuntime":"crun","LogPath":"/l/ctr.log","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file"}}}]`, []cli.State{running}},
		{"what the journal keeps is in no file", `[{"Id":"1","Name":"a","State":{"Status":"created"},"HostConfig":{"LogConfig":{"Type":"journald","Path":"/x"}}}]`, []cli.State{{Name: "a", ID: "1", Status: cli.Created, Said: "created"}}},
		{"stopped and exited are one", `[{"Id":"1","Name":"a","State":{"Status":"stopped","ExitCode":137}},{"Id":"2","Name":"b","State":{"Status":"exited"}}]`,
			[]cli.State{{Name: "a", ID: "1", Status: cli.Exited, Said: "stopped", Exit: 137}, {Name: "b", ID: "2", Status: cli.Exited, Said: "exited"}}},
		{"another status", `[{"Id":"1","Name":"a","State":{"Status":"paused"}}]`, []cli.State{{Name: "a", ID: "1", Status: cli.Other, Said: "paused"}}},
		{"none", `[]`, []cli.State{}},
		{"no JSON", "Error: no such container", nil},
		{"no list", `{"Id":"1"}`, nil},
		{"no status", `[{"Id":"1","Name":"a"}]`, nil},
		{"a negative pid", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":-1}}]`, nil},
		{"a pid that cannot be", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":4194305}}]`, nil},
		{"a text for a pid", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":"7"}}]`, nil},
	} {
		got, err := parseInspect([]byte(c.text))
		if (err != nil) != (c.want == nil) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestLogsAreReadAsFarAsTheyAreWritten(t *testing.T) {
	const stamp = "2026-11-21T03:35:23.457524923+00:00 "
	for text, want := range map[string]string{
		stamp + "stdout F tare-probe/1 x 5\n":                                "tare-probe/1 x 5\n",
		stamp + "stdout P tare-pro\n" + stamp + "stdout F be/1 x 5\n":        "tare-probe/1 x 5\n",
		stamp + "stdout F tare-probe/1 x 5":                                  "",
		"rubbish\n" + stamp + "stderr F a\n" + stamp + "other F b\n" + stamp: "a\n",
		stamp + "stdout F \n":                                                "\n",
		"":                                                                   "",
	} {
		if got := parseLog(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := unprefixed("298aa3194672 tare-probe/1 a 1\n9e9ba052b17c tare-probe/1 b 2\n", true); got != "tare-probe/1 a 1\ntare-probe/1 b 2\n" {
		t.Errorf("of several: %q", got)
	}
	frame := func(text string) string {
		return string([]byte{1, 0, 0, 0, 0, 0, 0, byte(len(text))}) + text
	}
	for text, want := range map[string]string{
		frame("tare-probe/1 x 5\n"): "tare-probe/1 x 5\n", frame("a") + frame("b\n"): "ab\n",
		frame("cut off")[:10]: "cu", "short": "", string([]byte{1, 0, 0, 0, 255, 255, 255, 255, 'x'}): "x",
	} {
		if got := unframed([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestOnlyWhatPodmanDoesNotKnowIsUnknown(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&cli.Error{Exit: 125, Output: "Error: inspecting object: no such container nosuch"}, true},
		{&cli.Error{Exit: 1, Output: "Error: localhost/x: image not known"}, true},
		{&cli.Error{Exit: 125, Output: "Error: no such container a\nError: database is locked"}, false},
		{&cli.Error{Exit: 125}, false},
		{&cli.Error{Exit: -1, Output: "no such"}, false},
		{errors.New("no such container"), false},
		{nil, false},
	} {
		if got := unknown(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestAServiceThatMayNotRaiseLimitsIsGivenItsOwn(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tpodman\nCapEff:\t000001ffffffffff\n": true,
		"CapEff:\t000001fffeffffff\n":                false,
		"Name:\tpodman\n":                            true,
		"CapEff:\tx\n":                               true,
	} {
		if got := mayRaise(status); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
	got := hardLimits("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             96000                unlimited            processes \nMax open files            1024                 16384                files     \n")
	if want := []rlimit{{"nproc", 1048576, 1048576}, {"nofile", 16384, 16384}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAContainerIsSpecifiedAsTheLimitsSay(t *testing.T) {
	s := &Service{network: "none", runtime: "runc"}
	var got map[string]any
	if err := json.Unmarshal(s.specify(making{"run", "localhost/x:1", "name", subject.Limits{Memory: 1, Pids: 2, CPU: 1.5}, cli.Place{Folder: "/v/0"}}), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "name", "image": "localhost/x:1", "command": []any{"name"}, "labels": map[string]any{"dev.tare.run": "run"},
		"oci_runtime": "runc", "netns": map[string]any{"nsmode": "none"},
		"resource_limits": map[string]any{"memory": map[string]any{"limit": 1.0}, "pids": map[string]any{"limit": 2.0},
			"cpu": map[string]any{"quota": 150000.0, "period": 100000.0}},
		"mounts": []any{map[string]any{"destination": "/data", "source": "/v/0", "type": "bind", "options": []any{"rbind", "Z"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestARuntimeIsSentOnlyToAnAPIThatHeedsIt(t *testing.T) {
	for _, c := range []struct {
		version, runtime, sent string
		refused                bool
	}{
		{"4.3.1", "", "", false}, {"4.3.1", "crun", "", false}, {"4.3.1", "/usr/bin/crun", "", false},
		{"4.3.1", "runc", "", true}, {"5.8.0", "runc", "", true}, {"6.0.0", "runc", "runc", false}, {"10.1.0", "runc", "runc", false},
	} {
		s := &Service{}
		s.info.Version.Version = c.version
		s.info.Host.OCIRuntime.Name, s.info.Host.OCIRuntime.Path = "crun", "/usr/bin/crun"
		if err := s.choose(c.runtime); (err != nil) != c.refused || s.runtime != c.sent {
			t.Errorf("%s, %q: %q, %v", c.version, c.runtime, s.runtime, err)
		}
	}
}

func TestInfoThatSaysNothingIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"version":{"Version":"4.3.1"}}`, "panic: x"} {
		if _, err := parseInfo([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	i, err := parseInfo([]byte(`{"host":{"ociRuntime":{"name":"crun","version":"crun version 1.8.1\ncommit: x"}},"version":{"Version":"2.2.1"}}`))
	if err != nil || !i.isCrun() || i.runtimeBanner() != "crun version 1.8.1" {
		t.Errorf("%+v, %v", i, err)
	}
	if err := i.check("podman/crun"); err == nil || !strings.Contains(err.Error(), "older") {
		t.Errorf("version 2: %v", err)
	}
	if i.Host.LogDriver = "none"; i.logDriver() != "k8s-file" {
		t.Error("a driver that keeps nothing was left")
	}
}
