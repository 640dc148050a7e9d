package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
)

func TestATargetsOwnSettingsComeBeforeItsEngines(t *testing.T) {
	e := Engines{
		"docker":          {Address: "unix:///a", Network: "bridge"},
		"docker/crun":     {Address: "unix:///b"},
		"docker+cli":      {Command: "/usr/bin/docker"},
		"cri":             {Address: "unix:///never"},
		"cri+cri-o/crun":  {Network: "host"},
		"cri+cri-o":       {Address: "unix:///c"},
		"containerd/runc": {Namespace: "own", Args: []string{"x"}},
	}
	for name, want := range map[string]subject.Engine{
		"docker/runc":         {Address: "unix:///a", Network: "bridge"},
		"docker/crun":         {Address: "unix:///b", Network: "bridge"},
		"docker+cli/crun":     {Address: "unix:///a", Network: "bridge", Command: "/usr/bin/docker"},
		"cri+cri-o/crun":      {Address: "unix:///c", Network: "host"},
		"cri+containerd/runc": {},
		"containerd/runc":     {Namespace: "own", Args: []string{"x"}},
		"runc":                {},
	} {
		if got := e.Of(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestEnginesAreReadAndMistakesNamed(t *testing.T) {
	p, err := Parse("a", []byte(`version: 1
measure:
- lifecycle:
    title: clients
    targets: [docker/runc, isula/runc]
    subject: isula/runc
    missing: skip
    via: [api, cli]
    engines:
      docker: {address: unix:///x, env: {DOCKER_CONFIG: /y}}
      podman: {root: /r, runroot: /s, args: ["--log-level", error], network: host}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := p.Measure[0].Lifecycle
	if l.Title != "clients" || l.Subject != "isula/runc" || l.Missing != MissingSkip || len(l.Via) != 2 ||
		l.Engines["docker"].Env["DOCKER_CONFIG"] != "/y" || l.Engines["podman"].Args[1] != "error" || l.Engines["podman"].RunRoot != "/s" {
		t.Errorf("%+v", l)
	}
	for text, want := range map[string]string{
		"engines: docker":                         "3:24: engines is",
		"engines: {docker: {host: x}}":            `unknown field "host" in engine "docker"`,
		"engines: {'a b': {}}":                    `"a b" names no engine`,
		"engines: {docker: {network: cni}}":       `network: "cni" is not one of`,
		"engines: {docker: {env: {'A=B': c}}}":    `"A=B" is no name of a variable`,
		"engines: {docker: {}, docker: {}}":       `"docker" is there twice`,
		"via: [grpc]":                             `"grpc" is not a way`,
		"missing: ignore":                         `"ignore" is not known`,
		"targets: [runc, crun], subject: podman":  `subject: "podman" is not one of the targets`,
		"engines: {docker: {address: unix:///x, ": "", // no crash
	} {
		_, err := Parse("a", []byte("version: 1\nmeasure:\n- lifecycle: {"+text+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
