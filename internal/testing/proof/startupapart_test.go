package proof

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// beside runs two tares at once, each a process of its own, as two users would.
func beside(t *testing.T, pair [2][]string) (recs [2]*record.Record, judged [2]*startup.Judgement) {
	t.Helper()
	untraced(t)
	var running [2]*exec.Cmd
	var stored [2]string
	var said [2]bytes.Buffer
	for i, args := range pair {
		dir := t.TempDir()
		stored[i] = filepath.Join(dir, "r.jsonl")
		c := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{"startup", "-q", "-o", stored[i]}, args...)...)
		c.Env = append(os.Environ(), tareEnv+"=1", "TARE_STATE_DIR="+filepath.Join(dir, "state"), "TARE_DATA_DIR="+filepath.Join(dir, "data"))
		c.Stdout, c.Stderr = &said[i], &said[i]
		must.OK(t, c.Start())
		running[i] = c
	}
	for i, c := range running {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &said[i])
		}
	}
	for i := range stored {
		var err error
		if recs[i], err = record.Load(stored[i]); err == nil {
			judged[i], err = whole(recs[i])
		}
		must.OK(t, err)
	}
	return recs, judged
}

// overlapping counts the starts of one record that another's were there beside.
func overlapping(a, b *record.Record) (n int) {
	for i := range a.Starts {
		x := &a.Starts[i]
		if slices.ContainsFunc(b.Starts, func(y record.Start) bool { return y.Began < x.Ended && x.Began < y.Ended }) {
			n++
		}
	}
	return n
}

// Containers that one daemon starts at once are told apart: by what the engine
// says of their ids, and by the id that a command prints.
func TestTwoStartsOfOneDaemonAreToldApart(t *testing.T) {
	s := play(t)
	image := s.image(t)
	detached := []string{"--rounds", "3", "--warmup", "0", "--", s.docker.Command, "-H", s.docker.Host,
		"run", "--detach", "--network", "none", image, probe.Name, "token"}
	target := append([]string{"--rounds", "3", "--warmup", "0"}, s.on("docker/runc")...)
	defer func() {
		for _, id := range s.docker.Containers(t) { // a command's containers are its user's
			say(t, s.docker.Command, "-H", s.docker.Host, "rm", "-f", id)
		}
	}()
	for name, pair := range map[string][2][]string{
		"targets": {target, target}, "commands": {detached, detached}, "a target and a command": {target, detached},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // a busy machine may run one after the other
				recs, judged := beside(t, pair)
				var all []record.Start
				for i, rec := range recs {
					for k := range rec.Starts {
						x := &rec.Starts[k]
						if x.Failure != nil {
							t.Fatalf("%s: %+v", x.Target, x.Failure)
						}
						checkSums(t, x, engineOf(t, judged[i], x.Target))
						checkAlone(t, x)
					}
					all = append(all, rec.Starts...)
				}
				checkApart(t, all)
				if n := overlapping(recs[0], recs[1]); n > 0 {
					t.Logf("%d of %d starts overlapped with another", n, len(recs[0].Starts))
					return
				}
			}
			t.Skip("not decided: in five tries no two starts were at the same time")
		})
	}
}

// checkAlone looks whether a start by docker has one container and what belongs to
// it, once.
func checkAlone(t *testing.T, s *record.Start) {
	t.Helper()
	var calls []string
	count := map[string]int{}
	for _, p := range s.Processes {
		count[p.Kind]++
		if p.Kind == record.KindCall {
			calls = append(calls, p.Verb)
		}
		if p.Container != "" && p.Container != s.Containers[0] {
			t.Errorf("%s is about %s, the container is %v", p.Name, p.Container, s.Containers)
		}
	}
	if len(s.Containers) != 1 || count[record.KindShim] != 1 || count[record.KindWorkload] != 1 || strings.Join(calls, " ") != "create start" {
		t.Errorf("%s: containers %v, calls %v, %v", s.Target, s.Containers, calls, count)
	}
	if slices.ContainsFunc(s.Missing, func(m record.Missing) bool { return m.What == "ambiguous" }) {
		t.Errorf("%s: %+v", s.Target, s.Missing)
	}
}
