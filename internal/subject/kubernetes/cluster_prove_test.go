//go:build prove

package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/cluster"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestTwentyPodsOfEachRuntimeClassStartAtOnce(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, name := range []string{"kubernetes/crun", "kubernetes/runsc"} {
		_, session := opened(t, c, name, 20)
		count, sum := started(t, c)
		runs := operate(t, session, subject.Run, 20)
		for _, s := range runs {
			if s.Failure != nil {
				t.Fatalf("%s: %+v", name, s.Failure)
			}
		}
		agrees(t, c, runs, count, sum)
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.Empty(t)
	}
}

func TestAKubeletThatDiesIsTheCause(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	_, session := opened(t, c, "kubernetes/runc", 1)
	c.KillKubelet(t, 0)
	f := operate(t, session, subject.Run, 1)[0].Failure
	if f == nil || f.Kind != record.FailTimeout || !strings.Contains(f.Detail, "the node "+c.Nodes[0].Name+" is not ready") {
		t.Errorf("%+v", f)
	}
	if err := session.Discard(t.Context(), []int{0}); err != nil {
		t.Error(err)
	}
	c.Empty(t)
	c.StartKubelet(t, 0)
}
