package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The folders of the programs built by scripts/install-tests.
const (
	kubernetesFolder = "kubernetes-1.34.4"
	kwokFolder       = "kwok-0.8.0"
)

func program(folder, name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "tare", folder, "bin", name)
	if unix.Access(path, unix.X_OK) != nil {
		return "", fmt.Errorf("no %s here; run scripts/install-tests cluster", path)
	}
	return path, nil
}

// process is one of the cluster's programs.
type process struct {
	name  string
	argv  []string
	cmd   *exec.Cmd
	ended chan struct{}
}

// run starts or restarts a program.
func (c *Cluster) run(p *process) error {
	cmd, err := c.place.Start(p.name, p.argv...)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// start starts one of the Kubernetes programs and checks that it keeps running.
func (c *Cluster) start(name, log string, flags ...string) (*process, error) {
	path, err := program(kubernetesFolder, name)
	if err != nil {
		return nil, err
	}
	p := &process{name: log, argv: append([]string{path}, flags...)}
	c.processes = append(c.processes, p)
	return p, c.run(p)
}

// kill crashes a process and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// status returns the exit status of a process and reports whether it exited by itself.
func (p *process) status() (string, bool) {
	select {
	case <-p.ended:
		if s := p.cmd.ProcessState; s != nil && s.Exited() { // not killed by a signal
			return s.String(), true
		}
	default:
	}
	return "", false
}

const etcdAddress = "127.0.0.1:2379"

func (c *Cluster) startControlPlane(ctx context.Context) error {
	_, err := c.start("etcd", "etcd", "--name=test", "--data-dir="+c.at("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://"+etcdAddress, "--advertise-client-urls=http://"+etcdAddress,
		"--listen-peer-urls=http://127.0.0.1:2380")
	if err != nil {
		return err
	}
	if err := c.until(ctx, "etcd listens", func() error {
		conn, err := c.dial(etcdAddress)
		if err == nil {
			err = conn.Close()
		}
		return err
	}); err != nil {
		return err
	}
	c.apiServer, err = c.start("kube-apiserver", "kube-apiserver", "--etcd-servers=http://"+etcdAddress,
		"--advertise-address="+serverAddress, "--secure-port=443", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range="+serviceRange, "--allow-privileged", "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--client-ca-file="+c.at("ca.crt"),
		"--tls-cert-file="+c.at("server.crt"), "--tls-private-key-file="+c.at("server.key"),
		"--kubelet-certificate-authority="+c.at("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate="+c.at("inside.crt"), "--kubelet-client-key="+c.at("inside.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+c.at("server.key"),
		"--service-account-signing-key-file="+c.at("server.key"),
		// Evictions must not take the default five minutes.
		"--default-not-ready-toleration-seconds=10", "--default-unreachable-toleration-seconds=10")
	if err != nil {
		return err
	}
	if err := c.answers(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(c.at("scheduler.yaml"), []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "`+c.at("inside.kubeconfig")+`", qps: 1000, burst: 1000}
`), 0o600); err != nil {
		return err
	}
	if _, err := c.start("kube-scheduler", "kube-scheduler", "--config="+c.at("scheduler.yaml"), "--secure-port=0"); err != nil {
		return err
	}
	_, err = c.start("kube-controller-manager", "kube-controller-manager", "--kubeconfig="+c.at("inside.kubeconfig"),
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000",
		"--root-ca-file="+c.at("ca.crt"), "--controllers="+strings.Join(controllers, ","),
		"--node-monitor-period=1s", "--node-monitor-grace-period="+c.unheard().String())
	return err
}

// controllers lists those needed by a run of tare or its tests.
var controllers = []string{
	"cronjob-controller", "daemonset-controller", "garbage-collector-controller", "job-controller", "namespace-controller",
	"node-lifecycle-controller", "persistentvolume-binder-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller", "resourcequota-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "taint-eviction-controller",
	"ttl-after-finished-controller",
}

// answers waits until the API server is ready.
func (c *Cluster) answers(ctx context.Context) error {
	return c.until(ctx, "the API server is ready", func() error {
		return c.Client.REST().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}
