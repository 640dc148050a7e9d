package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/isula"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// standIn is the name under which this test binary acts as crictl.
const standIn = "crictl-stand-in"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == standIn {
		if err := crictl(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The machine may have an isulad and a kubelet.
	isula.DaemonConfig, kubelet = "/nonexistent/daemon.json", func(string) bool { return false }
	engines.Main(m)
}

// crictl implements the flags, verbs and files that tare uses, as crictl of cri-tools 1.34 does
// (cmd/crictl/container.go and sandbox.go).
func crictl(args []string) error {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("crictl version v1.34.0")
		return nil
	}
	global := flag.NewFlagSet("crictl", flag.ContinueOnError)
	endpoint, _ := global.String("runtime-endpoint", "", ""), global.String("image-endpoint", "", "")
	timeout := global.Duration("timeout", 2*time.Second, "")
	if err := global.Parse(args); err != nil {
		return err
	}
	verb := flag.NewFlagSet(global.Arg(0), flag.ContinueOnError)
	noPull, handler, grace := new(bool), new(string), new(int64)
	switch verb.Name() {
	case "create", "run":
		verb.BoolVar(noPull, "no-pull", false, "")
	case "stop":
		verb.Int64Var(grace, "timeout", 0, "")
	}
	if verb.Name() == "run" || verb.Name() == "runp" {
		verb.StringVar(handler, "runtime", "", "")
	}
	if err := verb.Parse(global.Args()[1:]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	c, err := connect(ctx, strings.TrimPrefix(*endpoint, "unix://"))
	if err != nil {
		return err
	}
	defer c.close()
	r := c.runtime
	runPod := func(file string) (*api.PodSandboxConfig, string, error) {
		var pod api.PodSandboxConfig
		if err := decode(file, &pod); err != nil {
			return nil, "", err
		}
		reply, err := r.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Config: &pod, RuntimeHandler: *handler})
		return &pod, reply.GetPodSandboxId(), err
	}
	create := func(id, file string, pod *api.PodSandboxConfig) (string, error) {
		var container api.ContainerConfig
		if err := decode(file, &container); err != nil {
			return "", err
		}
		reply, err := r.CreateContainer(ctx, &api.CreateContainerRequest{PodSandboxId: id, Config: &container, SandboxConfig: pod})
		return reply.GetContainerId(), err
	}
	switch verb.Name() {
	case "runp":
		_, _, err = runPod(verb.Arg(0))
	case "create":
		var pod api.PodSandboxConfig
		if err = decode(verb.Arg(2), &pod); err == nil {
			_, err = create(verb.Arg(0), verb.Arg(1), &pod)
		}
	case "run":
		pod, id, failed := runPod(verb.Arg(1))
		if err = failed; err == nil {
			if id, err = create(id, verb.Arg(0), pod); err == nil {
				_, err = r.StartContainer(ctx, &api.StartContainerRequest{ContainerId: id})
			}
		}
	case "start":
		_, err = r.StartContainer(ctx, &api.StartContainerRequest{ContainerId: verb.Arg(0)})
	case "stop":
		_, err = r.StopContainer(ctx, &api.StopContainerRequest{ContainerId: verb.Arg(0), Timeout: *grace})
	case "rm":
		_, err = r.RemoveContainer(ctx, &api.RemoveContainerRequest{ContainerId: verb.Arg(0)})
	case "stopp":
		_, err = r.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: verb.Arg(0)})
	case "rmp":
		_, err = r.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: verb.Arg(0)})
	default:
		err = fmt.Errorf("no verb %q", verb.Name())
	}
	return err
}

func decode(file string, into any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewDecoder(f).Decode(into)
}

// crictlHere returns the machine's crictl, or the stand-in.
func crictlHere(t *testing.T) string {
	t.Helper()
	if own, err := exec.LookPath("crictl"); err == nil {
		return own
	}
	self := must.Get(os.Executable())(t)
	link := filepath.Join(t.TempDir(), standIn)
	must.OK(t, os.Symlink(self, link))
	return link
}

func byCrictl(t *testing.T, u engineUnderTest, handler, command string) *Target {
	t.Helper()
	e := u.e
	e.Command = command
	got := must.Get(NewCommand(t.Context(), "cri+"+u.name+"+cli/"+handler, u.name, handler, e))(t)
	return got.(*Target)
}

func TestPodsByCrictlConform(t *testing.T) {
	t.Parallel()
	u, command := onContainerd(t, engines.V2), crictlHere(t)
	enginetest.Conforms(t, enginetest.Case{
		Name: "crictl", Target: func(t *testing.T) subject.Target { return byCrictl(t, u, "", command) },
		Left: u.left, Source: ofContainers, Swept: 4, Pods: true, Known: true,
	})
}

func TestInfoNamesCrictl(t *testing.T) {
	t.Parallel()
	u, command := onContainerd(t, engines.V2), crictlHere(t)
	info := byCrictl(t, u, "runc", command).Info()
	for op, want := range map[string]string{
		"runp": "runp --runtime runc pod.json", "create": "create --no-pull POD container.json pod.json", "start": "start ID",
		"stop": "stop --timeout 10 ID", "rm": "rm ID", "stopp": "stopp POD", "rmp": "rmp POD", "run": "run --no-pull --runtime runc container.json pod.json",
	} {
		if o := info.Operations[op]; !strings.HasPrefix(o.Command, command) || !strings.HasSuffix(o.Command, " "+want) || !strings.HasPrefix(o.Means, "crictl has exited with 0; then: ") {
			t.Errorf("%s: %+v", op, o)
		}
	}
	if !strings.HasPrefix(cmp.Or(info.Config["command version"], "none"), "v") || !strings.HasPrefix(info.Config["via"], "cli") || len(info.Notes) == 0 || !strings.Contains(strings.Join(info.Notes, "\n"), "crictl") {
		t.Errorf("%v, %q", info.Config, info.Notes)
	}
}

func TestOtherProgramsAreRefusedAsCrictl(t *testing.T) {
	t.Parallel()
	u := onContainerd(t, engines.V2)
	e := u.e
	for command, want := range map[string]string{"crictl-that-is-not-there": "no crictl-that-is-not-there on PATH", filepath.Join(t.TempDir(), "crictl"): "no such file"} {
		e.Command = command
		if got, err := NewCommand(t.Context(), "mine", "containerd", "", e); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "on PATH") || !strings.Contains(err.Error(), "without +cli") {
			t.Errorf("%s: %v, %v", command, got, err)
		}
	}
	fake := filepath.Join(t.TempDir(), "crictl")
	must.OK(t, os.WriteFile(fake, []byte("#!/bin/sh\necho busybox\n"), 0o755))
	e.Command = fake
	_, err := NewCommand(t.Context(), "mine", "containerd", "", e)
	check.Error(t, err, "is not crictl")
}
