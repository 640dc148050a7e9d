// Command with runs a command with real engines. It starts the engines of the tests with
// their own roots and sockets, passes their addresses to the command, and stops them at the
// end.
//
//	go run ./internal/testing/engines/with bin/tare lifecycle docker/runc podman/runc
//
// The command finds docker and podman on its PATH. DOCKER_HOST and CONTAINERD_ADDRESS have
// the addresses of the engines. CONTAINERD_CRI and CRIO_CRI have those of the CRI endpoints
// of containerd 2 and CRI-O. With -nodes N there is a Kubernetes cluster of N nodes, and
// with -kwok N it has N more nodes that run nothing. KUBECONFIG is that of its
// administrator, and NODE_CRI has the CRI endpoints of its nodes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/need"
)

func main() {
	var o cluster.Options
	flag.IntVar(&o.Nodes, "nodes", 0, "nodes of a Kubernetes cluster")
	flag.IntVar(&o.Kwok, "kwok", 0, "nodes of kwok in it")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: with [-nodes N] [-kwok N] COMMAND [ARGUMENT...]")
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(1)
	}
	// The command handles signals; the engines stop after it.
	if err := os.Setenv(need.Variable, "all"); err != nil {
		panic(err) // fails only for a malformed name
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM)
	code, err := run(flag.Args(), o)
	if err := errors.Join(err, engines.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// starter starts engines outside of tests. An error ends the program.
type starter struct{}

type failed struct{ error }

func (starter) Helper() {}

func (starter) Fatalf(format string, arguments ...any) {
	panic(failed{fmt.Errorf(format, arguments...)})
}

func (s starter) Skipf(format string, arguments ...any) { s.Fatalf(format, arguments...) }

func run(command []string, o cluster.Options) (code int, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failed:
			code, err = 1, r.error
		default:
			panic(r)
		}
	}()
	var s starter
	fmt.Fprintln(os.Stderr, "with: starting docker, podman, containerd, containerd 2 and CRI-O")
	docker, podman, old := engines.Docker(s), engines.Podman(s), engines.Containerd(s, engines.V1)
	newer, crio := engines.Containerd(s, engines.V2), engines.CRIO(s)

	var kube []string
	if o != (cluster.Options{}) {
		fmt.Fprintln(os.Stderr, "with: starting Kubernetes")
		c := cluster.Start(s, o)
		var nodes []string
		for _, n := range c.Nodes {
			nodes = append(nodes, n.CRI)
		}
		kube = []string{"KUBECONFIG=" + c.Kubeconfig, "NODE_CRI=" + strings.Join(nodes, " ")}
	}

	bin, err := os.MkdirTemp("", "tare-with-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(bin)
	for name, path := range map[string]string{"docker": docker.Command, "podman": podman.Command, "skopeo": crio.Skopeo} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return 1, err
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DOCKER_HOST="+docker.Host,
		"CONTAINERD_ADDRESS="+old.Address, "CONTAINERD_CRI=unix://"+newer.Address, "CRIO_CRI=unix://"+crio.Socket)
	cmd.Env = append(cmd.Env, kube...)
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
