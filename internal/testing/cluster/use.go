package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Import brings an image into every node. It fails if the image is not known by its
// name afterwards: a kubelet would then try to pull it.
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

// As returns the kubeconfig of a new service account in the namespace default, which
// is bound to the Roles and ClusterRoles of a text of YAML and to nothing else. All
// is deleted with the test.
func (c *Cluster) As(t testing.TB, roles string) string {
	t.Helper()
	ctx := t.Context()
	account, err := c.Client.CoreV1().ServiceAccounts("default").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	must.OK(t, err)
	t.Cleanup(func() {
		err := c.Client.CoreV1().ServiceAccounts("default").Delete(context.Background(), account.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(roles), 4096)
	for i := 0; ; i++ {
		var role rbacv1.ClusterRole // has all that a Role has
		if err := docs.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := c.bind(t, account, fmt.Sprintf("%s-%d", account.Name, i), &role); err != nil {
			t.Fatalf("bind %s %s: %v", role.Kind, role.Name, err)
		}
	}
	token, err := c.Client.CoreV1().ServiceAccounts("default").CreateToken(ctx, account.Name, &authv1.TokenRequest{}, metav1.CreateOptions{})
	must.OK(t, err)
	must.OK(t, c.kubeconfig(account.Name, "https://"+c.local, &api.AuthInfo{Token: token.Status.Token}))
	return c.at(account.Name + ".kubeconfig")
}

// bind makes a role under another name, so that no two tests meet, and binds it: a Role in
// its namespace, a ClusterRole everywhere.
func (c *Cluster) bind(t testing.TB, account *corev1.ServiceAccount, name string, role *rbacv1.ClusterRole) error {
	ctx, rbac, meta := t.Context(), c.Client.RbacV1(), metav1.ObjectMeta{Name: name}
	if _, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}, metav1.CreateOptions{}); err != nil {
		return err
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	var unbind func(context.Context, string, metav1.DeleteOptions) error
	var err error
	switch role.Kind {
	case "Role":
		bindings := rbac.RoleBindings(cmp.Or(role.Namespace, account.Namespace))
		_, err = bindings.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		unbind = bindings.Delete
	case "ClusterRole":
		bindings := rbac.ClusterRoleBindings()
		_, err = bindings.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		unbind = bindings.Delete
	default:
		return errors.New("neither a Role nor a ClusterRole")
	}
	t.Cleanup(func() {
		ctx, now := context.Background(), metav1.DeleteOptions{}
		if err := errors.Join(unbind(ctx, name, now), rbac.ClusterRoles().Delete(ctx, name, now)); err != nil {
			t.Error(err)
		}
	})
	return err
}

// RestartAPIServer crashes the API server and starts it again. Every connection
// breaks.
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

// KillKubelet crashes a node's kubelet, which stays away until StartKubelet, or the
// end of the test. Its pods run on.
func (c *Cluster) KillKubelet(t testing.TB, i int) {
	t.Helper()
	c.Nodes[i].kubelet.kill()
	t.Cleanup(func() { c.StartKubelet(t, i) })
}

// StartKubelet starts a kubelet again, if it was killed, and waits until its node is
// Ready.
func (c *Cluster) StartKubelet(t testing.TB, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // a test that is over has no context any more
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

// Empty fails if anything that bears the label of tare's runs is still in the
// cluster after a while: what is deleted goes in its own time.
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

// NoPods has a quota "none" of no pods in the namespace default until the test's end. When
// it returns the API server holds to it, which learns of quotas as everybody does.
func (c *Cluster) NoPods(t testing.TB) {
	t.Helper()
	quotas := c.Client.CoreV1().ResourceQuotas(metav1.NamespaceDefault)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quotas.Delete(context.Background(), q.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: engines.PauseImage}}}}
	err := c.until(ctx, "a quota is kept", func() error {
		_, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "exceeded quota: none") {
			return nil
		}
		return fmt.Errorf("a pod is answered with %w", cmp.Or(err, errors.New("yes")))
	})
	must.OK(t, err)
}

// labelled lists whatever has a label, of every kind that the API server knows.
func (c *Cluster) labelled(label string) ([]string, error) {
	all, err := c.kubectl("api-resources", "--verbs=list", "--output=name")
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(strings.Fields(all), func(kind string) bool {
		return kind == "componentstatuses" || kind == "endpoints" // the first asks the other programs, the second is deprecated
	})
	found, err := c.kubectl("get", strings.Join(kinds, ","), "--all-namespaces", "--selector="+label, "--output=name")
	return strings.Fields(found), err
}
