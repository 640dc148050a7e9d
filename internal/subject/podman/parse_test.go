package podman

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject/engine"
)

func TestContainersAreReadFromInspect(t *testing.T) {
	running := engine.State{Name: "a", ID: "1", Status: engine.Running, Said: "running", Pid: 7, Monitor: 6, Runtime: "crun", Log: "/l/ctr.log"}
	for _, c := range []struct {
		name, text string
		want       []engine.State // nil: an error
	}{
		{"a running one of version 4", `[{"Id":"1","Name":"a","OCIRuntime":"crun","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file","Path":"/l/ctr.log"}}}]`, []engine.State{running}},
		{"a running one of version 3", `[{"Id":"1","Name":"a","OCIRuntime":"crun","LogPath":"/l/ctr.log","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file"}}}]`, []engine.State{running}},
		{"what the journal keeps is in no file", `[{"Id":"1","Name":"a","State":{"Status":"created"},"HostConfig":{"LogConfig":{"Type":"journald","Path":"/x"}}}]`, []engine.State{{Name: "a", ID: "1", Status: engine.Created, Said: "created"}}},
		{"stopped and exited are one", `[{"Id":"1","Name":"a","State":{"Status":"stopped","ExitCode":137}},{"Id":"2","Name":"b","State":{"Status":"exited"}}]`,
			[]engine.State{{Name: "a", ID: "1", Status: engine.Exited, Said: "stopped", Exit: 137}, {Name: "b", ID: "2", Status: engine.Exited, Said: "exited"}}},
		{"another status", `[{"Id":"1","Name":"a","State":{"Status":"paused"}}]`, []engine.State{{Name: "a", ID: "1", Status: engine.Other, Said: "paused"}}},
		{"none", `[]`, []engine.State{}},
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

func TestTheIDsAreTakenOffTheLogsOfSeveralContainers(t *testing.T) {
	if got := unprefixed("298aa3194672 tare-probe/1 a 1\n9e9ba052b17c tare-probe/1 b 2\n", true); got != "tare-probe/1 a 1\ntare-probe/1 b 2\n" {
		t.Errorf("%q", got)
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
