package fleet

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/kubetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Each line of the golden file has a flag and its value, or the measures of a plan.
func TestFlagsAndNeedsAreParsed(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/asked.txt", func(t *testing.T, line string) (any, error) {
		what, text, _ := strings.Cut(line, ": ")
		switch what {
		case "toleration":
			return ParseToleration(text)
		case "results":
			return ParseResults(text, "")
		case "results with keys":
			return ParseResults(text, "keys")
		case "schedule":
			s := spec()
			s.Schedule, s.Results = text, Results{Bucket: "s3://bench/nightly", Secret: "keys"}
			return "valid", s.Check()
		}
		var needs Needs
		for measure := range strings.SplitSeq(text, "; ") {
			words := strings.Fields(measure)
			needs.Need(words[0], words[1:])
		}
		return needs, nil
	})
}

func spec() *Spec {
	return &Spec{RunID: "abcdefgh", Namespace: "bench", Image: "localhost/tare:x", PlanName: "../my plan.yaml", Plan: []byte("version: 1\n"), Deadline: time.Hour}
}

func TestGeneratedNamesAreValidAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, node := range []string{"a", "ip-10-0-0-1.eu.example", "ip-10-0-0-1-eu.example", strings.Repeat("long.", 40), "../../etc/passwd", "a\x1b[2J", "-x", ".", "A", "a_b"} {
		job, file := jobName("abcdefgh", node), FileName(node)
		errs := validation.IsDNS1123Label(job)
		check.That(t, errs == nil && len(job) <= 52, "%q: %s: %v", node, job, errs) // a CronJob name may have 52 characters
		check.That(t, !strings.ContainsAny(file, "/\x1b") && file[0] != '.' && file[0] != '-' && len(file) <= 255, "%q: %q", node, file)
		check.That(t, seen[job] == "" && seen[file] == "", "%q has the name of another node: %s, %s", node, job, file)
		seen[job], seen[file] = node, node
	}
	check.Equal(t, "file name of a safe node name", FileName("ip-10-0-0-1.eu.example"), "ip-10-0-0-1.eu.example.jsonl")
	for key := range spec().ConfigMap().Data {
		errs := validation.IsConfigMapKey(key)
		check.That(t, errs == nil, "%s: %v", key, errs)
	}
}

// Reviewed properties of the golden files: A pod with only the host target meets the
// restricted Pod Security level and has no token. It writes to volumes and mounts no
// folder of the node. The records of a schedule have unique names.
func TestManifestsMatchTheGoldenFilesAndDecode(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *Spec){
		"restricted": func(*Spec) {},
		"privileged": func(s *Spec) { s.Needs = Needs{Privileged: true, Host: true} },
		"claim":      func(s *Spec) { s.Results = Results{Claim: "records", Path: "weighed"} },
		"schedule": func(s *Spec) {
			s.Schedule, s.Results = "0 3 * * *", Results{Bucket: "s3://bench/nightly", Secret: "keys"}
		},
	} {
		s := spec()
		change(s)
		var out bytes.Buffer
		must.OK(t, errors.Join(s.Check(), s.Render(&out, []string{"a", "b"})))
		golden.Same(t, "testdata/"+name+".yaml", out.String())
		last := []byte(strings.Split(out.String(), "---\n")[3])
		if s.Schedule != "" {
			must.OK(t, yaml.UnmarshalStrict(last, new(batchv1.CronJob)))
			continue
		}
		var job batchv1.Job
		must.OK(t, yaml.UnmarshalStrict(last, &job))
		want := s.Job("b")
		delete(want.Labels, kube.ManagedBy)
		delete(want.Spec.Template.Labels, kube.ManagedBy)
		check.That(t, reflect.DeepEqual(&job, want), "decoded:\n%+v\nwant:\n%+v", job, want)
	}
}

func TestNodesAreSelectedByLabelAndByName(t *testing.T) {
	t.Parallel()
	c := must.Get(kubetest.New())(t)
	for name, pool := range map[string]string{"b": "bench", "a": "bench", "c": "other"} {
		add(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}}})
	}
	client := &kube.Client{API: c.API()}
	golden.Lines(t, "testdata/selectors.txt", func(t *testing.T, line string) (any, error) {
		return Nodes(t.Context(), client, line)
	})
	got, err := Nodes(t.Context(), nil, "pool=bench")
	check.That(t, got == nil && err == nil, "without a cluster: %q, %v", got, err)
}
