//go:build prove

package cluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// TestKilledTestLeavesNoCluster kills a process that has started a cluster
// with a pod in it.
func TestKilledTestLeavesNoCluster(t *testing.T) {
	const victim = "TARE_CLUSTER_TEST_VICTIM"
	if os.Getenv(victim) != "" {
		c := testCluster(t)
		c.imported(t)
		c.isReady(t, c.pod(t, on(c.Nodes[1])))
		fmt.Printf("\nvictim %s %s\n", filepath.Dir(c.place.Dir), c.place.Cgroup)
		select {}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), victim+"=1", "TMPDIR="+t.TempDir()) // its own temporary files stay when it is killed
	out := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	var dir, group string
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "victim" {
			dir, group = f[1], f[2]
		} else {
			t.Log(lines.Text())
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	must.That(t, dir != "", "the process started no cluster")
	must.Eventually(t, func() string { return strings.Join(leftOf(dir, group), "\n") })
}
