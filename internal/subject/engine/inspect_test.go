package engine

import (
	"reflect"
	"testing"
)

func TestContainersAreReadFromInspect(t *testing.T) {
	running := State{Name: "a", ID: "1", Status: Running, Said: "running", Pid: 7, Monitor: 6, Runtime: "crun", Log: "/l/ctr.log"}
	for _, c := range []struct {
		name, text string
		want       []State // nil: an error
	}{
		{"a running one of version 4", `[{"Id":"1","Name":"a","OCIRuntime":"crun","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file","Path":"/l/ctr.log"}}}]`, []State{running}},
		{"a running one of version 3", `[{"Id":"1","Name":"a","OCIRuntime":"crun","LogPath":"/l/ctr.log","State":{"Status":"running","Pid":7,"ConmonPid":6},"HostConfig":{"LogConfig":{"Type":"k8s-file"}}}]`, []State{running}},
		{"what the journal keeps is in no file", `[{"Id":"1","Name":"a","State":{"Status":"created"},"HostConfig":{"LogConfig":{"Type":"journald","Path":"/x"}}}]`, []State{{Name: "a", ID: "1", Status: Created, Said: "created"}}},
		{"stopped and exited are one", `[{"Id":"1","Name":"a","State":{"Status":"stopped","ExitCode":137}},{"Id":"2","Name":"b","State":{"Status":"exited"}}]`,
			[]State{{Name: "a", ID: "1", Status: Exited, Said: "stopped", Exit: 137}, {Name: "b", ID: "2", Status: Exited, Said: "exited"}}},
		{"another status", `[{"Id":"1","Name":"a","State":{"Status":"paused"}}]`, []State{{Name: "a", ID: "1", Status: Other, Said: "paused"}}},
		{"none", `[]`, []State{}},
		{"no JSON", "Error: no such container", nil},
		{"no list", `{"Id":"1"}`, nil},
		{"no status", `[{"Id":"1","Name":"a"}]`, nil},
		{"a negative pid", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":-1}}]`, nil},
		{"a pid that cannot be", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":4194305}}]`, nil},
		{"a text for a pid", `[{"Id":"1","Name":"a","State":{"Status":"running","Pid":"7"}}]`, nil},
		{"an error where the list should be", "Error\n", nil},
		{"nothing", "", nil},
		{"a cut list", "[", nil},
		{"a container that says nothing", "[{}]", nil},
		{"a pid far beyond", `[{"Id":"a","Name":"b","State":{"Status":"running","Pid":99999999}}]`, nil},
		{"running, and not running", `[{"Id":"1","Name":"a","State":{"Status":"running","Running":false}}]`, []State{{Name: "a", ID: "1", Status: Other, Said: "running"}}},
		{"exited, and running", `[{"Id":"1","Name":"a","State":{"Status":"exited","Running":true}}]`, []State{{Name: "a", ID: "1", Status: Other, Said: "exited"}}},
		{"what isula has made", `[{"Id":"1","Name":"a","LogPath":"/l/console.log","State":{"Status":"inited","Running":false},"HostConfig":{"Runtime":"runc"}}]`,
			[]State{{Name: "a", ID: "1", Status: Created, Said: "inited", Runtime: "runc", Log: "/l/console.log"}}},
		{"killed for lack of memory", `[{"Id":"1","Name":"a","State":{"Status":"exited","ExitCode":137,"OOMKilled":true,"Error":"why"}}]`,
			[]State{{Name: "a", ID: "1", Status: Exited, Said: "exited", Exit: 137, Starved: true, Why: "why"}}},
		{"an address in a network of its own", `[{"Id":"1","Name":"a","State":{"Status":"created"},"NetworkSettings":{"IPAddress":"","Networks":{"n":{"IPAddress":"10.0.0.2"}}}}]`,
			[]State{{Name: "a", ID: "1", Status: Created, Said: "created", Address: "10.0.0.2"}}},
	} {
		got, err := Inspected([]byte(c.text))
		if (err != nil) != (c.want == nil) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
