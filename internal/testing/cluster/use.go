package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Import imports an image on every node. It ends the test if the image does not have the
// given name afterwards. A kubelet would then try to pull the image.
func (c *Cluster) Import(t testing.TB, tar, name string) {
	t.Helper()
	if err := c.load(tar, name); err != nil {
		t.Fatalf("import %s: %v", name, err)
	}
}

func (c *Cluster) load(tar, name string) error {
	for _, n := range c.Nodes {
		ctr := func(args ...string) (string, error) {
			cmd := exec.Command(n.containerd.Ctr, append([]string{"-a", n.containerd.Address, "-n", "k8s.io", "images"}, args...)...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
			}
			return string(out), err
		}
		if _, err := ctr("import", tar); err != nil {
			return err
		}
		names, err := ctr("ls", "-q")
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(names), name) {
			return fmt.Errorf("it has another name in the archive: there are %q", strings.Fields(names))
		}
	}
	return nil
}

// Kubectl runs kubectl as an administrator and returns what it prints.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.kubectl(args...)
	must.OK(t, err)
	return out
}

func (c *Cluster) kubectl(args ...string) (string, error) {
	kubectl, err := program(kubernetesFolder, "kubectl")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), err
}

// As returns the kubeconfig of a new service account in the namespace default. The
// account is bound only to the Roles and ClusterRoles in a YAML text. The end of the test
// deletes them.
func (c *Cluster) As(t testing.TB, roles string) string {
	t.Helper()
	account := fmt.Sprintf("test-%d", c.accounts.Add(1))
	c.make(t, "serviceaccount", account)
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(roles), 4096)
	for i := 0; ; i++ {
		var role rbacv1.ClusterRole // has all fields of a Role
		if err := docs.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		c.bind(t, account, fmt.Sprintf("%s-%d", account, i), &role)
	}
	token := strings.TrimSpace(c.Kubectl(t, "create", "token", account))
	must.OK(t, c.kubeconfig(account, "https://"+c.local, &api.AuthInfo{Token: token}))
	return c.at(account + ".kubeconfig")
}

// make creates an object in the namespace default, or in the cluster, with kubectl. The
// end of the test deletes it.
func (c *Cluster) make(t testing.TB, kind, name string, args ...string) {
	t.Helper()
	c.Kubectl(t, append([]string{"create", kind, name}, args...)...)
	c.deleteWith(t, kind, name)
}

func (c *Cluster) deleteWith(t testing.TB, kind, name string, args ...string) {
	t.Cleanup(func() { c.Kubectl(t, append([]string{"delete", kind, name}, args...)...) })
}

// bind creates a role under a unique name, so that tests do not conflict, and binds it. A
// Role is bound in its namespace, a ClusterRole everywhere.
func (c *Cluster) bind(t testing.TB, account, name string, role *rbacv1.ClusterRole) {
	t.Helper()
	file := c.at(name + ".json")
	text := must.Get(json.Marshal(&rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: role.Rules,
	}))(t)
	must.Write(t, file, string(text))
	c.Kubectl(t, "create", "--filename", file)
	c.deleteWith(t, "clusterrole", name)
	binds := []string{"--clusterrole=" + name, "--serviceaccount=default:" + account}
	switch role.Kind {
	case "Role":
		namespace := "--namespace=" + cmp.Or(role.Namespace, metav1.NamespaceDefault)
		c.Kubectl(t, append([]string{"create", "rolebinding", name, namespace}, binds...)...)
		c.deleteWith(t, "rolebinding", name, namespace)
	case "ClusterRole":
		c.make(t, "clusterrolebinding", name, binds...)
	default:
		t.Fatalf("%s %s is neither a Role nor a ClusterRole", role.Kind, role.Name)
	}
}

// RestartAPIServer crashes and restarts the API server. All connections break.
func (c *Cluster) RestartAPIServer(t testing.TB) {
	t.Helper()
	c.apiServer.kill()
	err := c.run(c.apiServer)
	if err == nil {
		err = c.answers(t.Context())
	}
	if err != nil {
		t.Fatalf("restart the API server: %v%s", err, c.place.Logs())
	}
}

// KillKubelet crashes a node's kubelet. It stays down until StartKubelet or the end of
// the test. Its pods continue to run.
func (c *Cluster) KillKubelet(t testing.TB, i int) {
	t.Helper()
	c.Nodes[i].kubelet.kill()
	t.Cleanup(func() { c.StartKubelet(t, i) })
}

// StartKubelet restarts a killed kubelet and waits until its node is Ready.
func (c *Cluster) StartKubelet(t testing.TB, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the context of a finished test is cancelled
	defer cancel()
	n := c.Nodes[i]
	select {
	case <-n.kubelet.ended:
	default:
		return
	}
	err := c.run(n.kubelet)
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		t.Fatalf("start the kubelet of %s again: %v%s", n.Name, err, c.place.Logs())
	}
}

// Empty fails if any object with the label of tare's runs is still in the cluster after a
// timeout. Deletion is asynchronous.
func (c *Cluster) Empty(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := c.until(ctx, "nothing of tare is left", func() error {
		left, err := c.labelled(engine.RunLabel)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return err
	})
	must.OK(t, err)
}

// NoPods creates a quota "none" of zero pods in the namespace default until the test ends.
// The API server learns about the quota by a watch, so NoPods waits until the quota is
// enforced.
func (c *Cluster) NoPods(t testing.TB) {
	t.Helper()
	c.make(t, "quota", "none", "--hard=pods=0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: engines.PauseImage}}}}
	err := c.until(ctx, "a quota is kept", func() error {
		_, err := c.Client.Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "exceeded quota: none") {
			return nil
		}
		return fmt.Errorf("a pod is answered with %w", cmp.Or(err, errors.New("yes")))
	})
	must.OK(t, err)
}

// labelled lists the objects with a label, of every kind that the API server supports.
func (c *Cluster) labelled(label string) ([]string, error) {
	all, err := c.kubectl("api-resources", "--verbs=list", "--output=name")
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(strings.Fields(all), func(kind string) bool {
		return kind == "componentstatuses" || kind == "endpoints" // the first queries the other programs, the second is deprecated
	})
	found, err := c.kubectl("get", strings.Join(kinds, ","), "--all-namespaces", "--selector="+label, "--output=name")
	return strings.Fields(found), err
}
