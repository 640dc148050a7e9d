package cri

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// isulad returns a fake node with iSulad 2.1.6. As in the recorded output of ps, the
// engine's own list has more containers than its CRI list. The container of a pod is
// named k8s_POD_NAME_NAMESPACE_UID_0.
func isulad(t *testing.T) (n *node, dir string) {
	n = onNode(t)
	dir = t.TempDir()
	must.OK(t, os.WriteFile(n.command, []byte(`#!/bin/sh
cd `+dir+`
verb=$1; for last; do :; done
case $verb in
ps) echo x >> asked; if [ -e late ] && [ "$(wc -l < asked)" -ge 3 ]; then mv late "$(cat late)"; fi; for f in *_0; do [ -e "$f" ] && printf '%-60s\n' "$f"; done;;
inspect) echo "[{\"Id\": \"5e$last\", \"Name\": \"$last\", \"State\": {\"Status\": \"inited\"}}]";;
rm) f=${last#5e}; [ -e "$f" ] || { echo "Error response from daemon: No such container:$last" >&2; exit 1; }; rm "$f"; echo "$last" >> done;;
esac
exit 0
`), 0o755))
	return n, dir
}

func podOf(name string) string { return "k8s_POD_" + name + "_tare_" + name + "_0" }

func TestIsuladPodOfAnAbandonedCallIsRemoved(t *testing.T) {
	const own = "tare-gone-0-1"
	for name, c := range map[string]struct {
		there []string // containers in the list of isulad
		late  string   // container that appears later
		found int      // number found by the first clean
		gone  string   // ID of the removed container
		left  int
	}{
		"created pause container":            {there: []string{podOf(own)}, found: 1, gone: "5e" + podOf(own)},
		"pause container that appears later": {late: podOf(own), gone: "5e" + podOf(own)},
		"container in a pod":                 {there: []string{"k8s_" + own + "_" + own + "_tare_" + own + "_0"}, found: 1, gone: "5ek8s_" + own + "_" + own + "_tare_" + own + "_0"},
		"pod of another run":                 {there: []string{podOf("tare-other-0-1")}, left: 1},
		"container outside of CRI":           {there: []string{own + "_0"}, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, dir := isulad(t)
			for _, file := range c.there {
				must.Write(t, filepath.Join(dir, file), "")
			}
			if c.late != "" {
				must.Write(t, filepath.Join(dir, "late"), c.late)
			}
			target := n.target()
			target.facts.hides = 100 * time.Millisecond
			check.Equal(t, "found", len(must.Get(target.Clean(t.Context(), "gone", true))(t)), c.found)
			_ = os.Remove(filepath.Join(dir, "asked"))
			if found := must.Get(target.Clean(t.Context(), "gone", false))(t); c.gone != "" {
				check.Equal(t, "named", found, []string{"pod " + own})
			}
			b, _ := os.ReadFile(filepath.Join(dir, "done"))
			check.Equal(t, "removed", strings.TrimSpace(string(b)), c.gone)
			left, _ := filepath.Glob(filepath.Join(dir, "*_0"))
			check.Equal(t, "left", len(left), c.left)
			if c.gone != "" && !slices.Contains(n.called, "RemovePodSandbox") {
				t.Errorf("the network was not released: %v", n.called)
			}
		})
	}
}

// The list of the engine is read only after an abandoned call.
func TestUnlistedPodsAreQueriedAfterAnAbandonedCall(t *testing.T) {
	n, dir := isulad(t)
	env := enginetest.Environment(t, 1)
	n.images["localhost/pause:1"], n.images[must.Get(env.Image())(t).Ref] = "own", "loaded"
	s := must.Get(n.target().Open(t.Context(), env))(t).(*session)
	must.Get(s.Prepare(t.Context(), subject.RunPod, []int{0}))(t)
	name := s.Held()[0].Name
	must.Get(s.List(t.Context()))(t)
	if _, err := os.Stat(filepath.Join(dir, "asked")); err == nil {
		t.Error("the list was read without an abandoned call")
	}
	s.held[name].abandoned = true
	must.Write(t, filepath.Join(dir, podOf(name)), "")
	check.Equal(t, "listed", must.Get(s.List(t.Context()))(t), []string{name})
	check.Equal(t, "id", must.Get(s.Look(t.Context(), []string{name}))(t)[name].ID, "5e"+podOf(name))
	must.OK(t, s.Remove(t.Context(), []string{name}))
	check.Equal(t, "listed", len(must.Get(s.List(t.Context()))(t)), 0)
	must.OK(t, s.Close(t.Context()))
}

// A real containerd records a pod before it starts the runtime.
func TestContainerdRecordsAPodBeforeCRI(t *testing.T) {
	env := enginetest.Environment(t, 1)
	s := opened(t, onContainerd(t, engines.V2), "", env)
	enginetest.Must(t, s, subject.RunPod, 1)
	held := s.Held()[0]
	s.held[held.Name].abandoned = true
	check.Equal(t, "recorded pods", must.Get(s.unanswered(t.Context()))(t), map[string][]string{held.Name: {held.Pod.ID}})
	check.Equal(t, "pods of another run", len(must.Get((&driver{Target: s.Target, env: subject.Env{RunID: "x" + env.RunID}}).unanswered(t.Context()))(t)), 0)
}

func TestLogLinkIsFollowedOnlyWithinTheEngineLogs(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(root, "engines"), 0o755))
	for _, file := range []string{filepath.Join(root, "engines/console.log"), filepath.Join(elsewhere, "shadow")} {
		must.Write(t, file, "2026-11-26T00:00:00.000000000Z stdout F said\n")
	}
	must.OK(t, os.Symlink(elsewhere, filepath.Join(root, "away")))
	for name, c := range map[string]struct {
		to   string
		root string
		text string
	}{
		"below the root":       {filepath.Join(root, "engines/console.log"), root, "said\n"},
		"outside of the root":  {filepath.Join(elsewhere, "shadow"), root, ""},
		"through another link": {filepath.Join(root, "away/shadow"), root, ""},
		"path out of the root": {root + "/../" + filepath.Base(elsewhere) + "/shadow", root, ""},
		"an unknown root":      {filepath.Join(root, "engines/console.log"), "", ""},
	} {
		n := onNode(t)
		target := n.target()
		target.facts.logs = c.root
		ground := must.Get(engine.OpenGround(enginetest.Environment(t, 1), nil, false))(t)
		d := &driver{Target: target, ground: ground}
		must.OK(t, os.Symlink(c.to, ground.Log("x")))
		text, _ := d.Output(t.Context(), []engine.State{{Name: "x", Log: d.log("x")}})
		check.Equal(t, name, text, c.text)
	}
}

func TestIsulaGetsTheLocaleVariables(t *testing.T) {
	t.Setenv("LOCPATH", "/opt/isulad/locales")
	n, dir := isulad(t)
	must.OK(t, os.WriteFile(n.command, []byte("#!/bin/sh\necho $LOCPATH > "+dir+"/locale\n"), 0o755))
	must.Get(n.target().isula(t.Context(), "load", "-i", "x"))(t)
	check.Equal(t, "LOCPATH", must.Read(t, filepath.Join(dir, "locale")), "/opt/isulad/locales\n")
}
