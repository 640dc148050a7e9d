package fleet

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/kube/kubetest"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// A plan is given of a node what it takes and no more; flags mean what kubectl's mean.
func TestWhatFlagsAndPlansAskFor(t *testing.T) {
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
			return "taken", s.Check()
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

func TestAPodOfHostAloneIsRestrictedAndHasNoToken(t *testing.T) {
	t.Parallel()
	s := spec()
	p := s.Job("node-1").Spec.Template.Spec
	if *p.AutomountServiceAccountToken || p.HostPID || p.HostNetwork || !*p.SecurityContext.RunAsNonRoot || *p.SecurityContext.RunAsUser == 0 ||
		p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v", p)
	}
	kept := map[string]string{} // what it writes, an upload too, has to go to volumes
	for _, e := range p.Containers[len(p.Containers)-1].Env {
		kept[e.Name] = e.Value
	}
	for _, name := range []string{"TMPDIR", "XDG_DATA_HOME", "TARE_DATA_DIR", "TARE_STATE_DIR"} {
		if !strings.HasPrefix(kept[name]+"/", workDir+"/") {
			t.Errorf("%s is %q, where the file system is read-only", name, kept[name])
		}
	}
	s.Needs = Needs{Privileged: true, Host: true}
	for _, spec := range []corev1.PodSpec{p, s.Job("node-1").Spec.Template.Spec} {
		for _, c := range spec.Containers {
			is := c.SecurityContext
			if c.Name == runnerName && spec.HostPID {
				if !*is.Privileged {
					t.Errorf("%s: %+v", c.Name, is)
				}
				continue
			}
			if is.Privileged != nil || *is.AllowPrivilegeEscalation || !*is.ReadOnlyRootFilesystem || !slices.Contains(is.Capabilities.Drop, "ALL") {
				t.Errorf("%s: %+v", c.Name, is)
			}
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s is a folder of the node", v.Name)
			}
		}
	}
}

func TestNamesAreRightWhateverNodesAndPlansAreCalled(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, node := range []string{"a", "ip-10-0-0-1.eu.example", "ip-10-0-0-1-eu.example", strings.Repeat("long.", 40), "../../etc/passwd", "a\x1b[2J", "-x", ".", "A", "a_b"} {
		job, file := jobName("abcdefgh", node), FileName(node)
		if errs := validation.IsDNS1123Label(job); errs != nil || len(job) > 52 { // which the API server takes for a CronJob
			t.Errorf("%q: %s: %v", node, job, errs)
		}
		if strings.ContainsAny(file, "/\x1b") || file[0] == '.' || file[0] == '-' || len(file) > 255 {
			t.Errorf("%q: %q", node, file)
		}
		if seen[job] != "" || seen[file] != "" {
			t.Errorf("%q is called as another: %s, %s", node, job, file)
		}
		seen[job], seen[file] = node, node
	}
	if FileName("ip-10-0-0-1.eu.example") != "ip-10-0-0-1.eu.example.jsonl" {
		t.Error("a name that is harmless is not kept")
	}
	for key := range spec().ConfigMap().Data {
		if errs := validation.IsConfigMapKey(key); errs != nil {
			t.Errorf("%s: %v", key, errs)
		}
	}
}

func TestTheSameGivesTheSameManifestsAndTheyReadBack(t *testing.T) {
	t.Parallel()
	s := spec()
	s.Results = Results{Claim: "records", Path: "weighed"}
	var one, two bytes.Buffer
	for _, out := range []*bytes.Buffer{&one, &two} {
		must.OK(t, s.Render(out, []string{"a", "b"}))
	}
	if one.String() != two.String() {
		t.Error("two manifests of one plan differ")
	}
	texts := strings.Split(one.String(), "---\n")
	if len(texts) != 4 || strings.Contains(one.String(), "managed-by") || strings.Contains(one.String(), "status") || strings.Contains(one.String(), "null") {
		t.Fatalf("%s", one.String())
	}
	var job batchv1.Job
	must.OK(t, yaml.UnmarshalStrict([]byte(texts[3]), &job))
	want := s.Job("b")
	delete(want.Labels, kube.ManagedBy)
	delete(want.Spec.Template.Labels, kube.ManagedBy)
	if !reflect.DeepEqual(&job, want) {
		t.Errorf("read back:\n%+v\nwritten:\n%+v", job, want)
	}
	p := job.Spec.Template.Spec
	if len(p.Containers) != 1 || p.Volumes[2].PersistentVolumeClaim.ClaimName != "records" || p.Containers[0].VolumeMounts[2].SubPath != "weighed" ||
		*job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds != 3600 || *job.Spec.TTLSecondsAfterFinished == 0 {
		t.Errorf("%s", texts[3])
	}
}

func TestAScheduleMakesCronJobsOfWhichNoTwoRecordsMeet(t *testing.T) {
	t.Parallel()
	s := spec()
	s.Schedule, s.Results = "0 3 * * *", Results{Bucket: "s3://bench/nightly", Secret: "keys"}
	var out bytes.Buffer
	must.OK(t, errors.Join(s.Check(), s.Render(&out, []string{"a"})))
	var c batchv1.CronJob
	if err := yaml.UnmarshalStrict([]byte(strings.Split(out.String(), "---\n")[2]), &c); err != nil || strings.Contains(out.String(), "managed-by") {
		t.Fatalf("%v: %s", err, out.String())
	}
	runner := c.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	if c.Kind != "CronJob" || c.Spec.Schedule != s.Schedule || c.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || *c.Spec.StartingDeadlineSeconds != 600 || c.Spec.JobTemplate.Spec.TTLSecondsAfterFinished != nil ||
		c.Labels[engine.RunLabel] != s.RunID || c.Spec.JobTemplate.Labels[engine.RunLabel] != s.RunID ||
		runner.Command[len(runner.Command)-1] != "s3://bench/nightly/$(POD)/a.jsonl" || runner.Env[len(runner.Env)-1].ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("%s", out.String())
	}
}

func TestASelectorMeansNodesByLabelsAndByName(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	for name, pool := range map[string]string{"b": "bench", "a": "bench", "c": "other"} {
		add(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}}})
	}
	for selector, want := range map[string][]string{
		"pool=bench":                       {"a", "b"},
		"pool=bench,metadata.name!=a":      {"b"},
		"pool":                             {"a", "b", "c"},
		"metadata.name in (z,c)":           {"c", "z"}, // of names alone nobody is asked
		"metadata.name=c":                  {"c"},
		"pool!=bench,metadata.name in (c)": {"c"},
		"pool=none":                        nil,
		"pool in":                          nil,
	} {
		got, err := Nodes(t.Context(), &kube.Client{API: kubetest.Of(c)}, selector)
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%s: %q, %v", selector, got, err)
		}
	}
	if got, err := Nodes(t.Context(), nil, "pool=bench"); got != nil || err != nil {
		t.Errorf("without a cluster: %q, %v", got, err)
	}
}
