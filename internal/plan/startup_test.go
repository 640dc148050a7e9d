package plan

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestAStartupIsReadWithAllItsFields(t *testing.T) {
	p, err := Parse("a", []byte(`
version: 1
measure:
  - startup:
      title: t
      targets: [runc, docker/runc]
      rounds: 7
      warmup: 0
      untraced: true
      budget: 2m
      timeout: 9s
      seed: 5
      limits: {pids: 100}
      commands:
        - name: by hand
          args: [docker, run, --rm, busybox, sleep, 1, true]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Measure[0].Startup
	want := DefaultsOfStartup()
	want.Title, want.Targets, want.Rounds, want.Warmup, want.Untraced = "t", []string{"runc", "docker/runc"}, 7, 0, true
	want.Budget, want.Timeout, want.Seed = 2*time.Minute, 9*time.Second, 5
	want.Limits.Pids = 100
	want.Commands = []StartCommand{{"by hand", []string{"docker", "run", "--rm", "busybox", "sleep", "1", "true"}}}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("a", text)
	if err != nil {
		t.Fatalf("what a record holds is no plan: %v\n%s", err, text)
	}
	var back Startup
	stored, _ := json.Marshal(got)
	if err := json.Unmarshal(stored, &back); err != nil || !reflect.DeepEqual(back, want) || !reflect.DeepEqual(*again.Measure[0].Startup, want) {
		t.Errorf("%v: read back as %+v and %+v", err, back, again.Measure[0].Startup)
	}
}

func TestAStartupThatSaysNothingHasTheDefaults(t *testing.T) {
	p, err := Parse("a", []byte("version: 1\nmeasure:\n- startup:\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := DefaultsOfStartup(); !reflect.DeepEqual(*p.Measure[0].Startup, d) || d.Validate() != nil {
		t.Errorf("got %+v", p.Measure[0].Startup)
	}
}
