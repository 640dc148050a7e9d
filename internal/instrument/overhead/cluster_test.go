package overhead

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// inCluster returns one target in a cluster and one outside.
func inCluster(is *record.Kubernetes, change func(*oversight)) *record.Record {
	return oversee(func(o *oversight) {
		o.kinds, o.names = []string{"kubernetes", "containerd"}, []string{"kubernetes/kata", "containerd/kata"}
		o.box = func(string, string, int, int) box {
			return box{vm: true, memory: 120 * mi, shim: 20 * mi, shimCPU: 0.2412}
		}
		o.change = func(rec *record.Record) { rec.Targets[0].Kubernetes = is }
		if change != nil {
			change(o)
		}
	})
}

// applied decodes the RuntimeClasses of a judgement as strictly as an API server: no
// unknown and no duplicate fields.
func applied(t *testing.T, j *Judgement) (classes []*nodev1.RuntimeClass, text string) {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, Instrument.Formats[FormatRuntimeClass].Write(&out, j))
	kinds := runtime.NewScheme()
	must.OK(t, nodev1.AddToScheme(kinds))
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, kinds, kinds, serializer.SerializerOptions{Yaml: true, Strict: true})
	for part := range strings.SplitSeq(out.String(), "---\n") {
		object, _, err := strict.Decode([]byte(part), nil, nil)
		must.That(t, err == nil, "%v\n%s", err, part)
		classes = append(classes, object.(*nodev1.RuntimeClass))
	}
	return classes, out.String()
}

func TestRuntimeClassIsAcceptedByAPIServer(t *testing.T) {
	t.Parallel()
	j := weighed(t, inCluster(&record.Kubernetes{RuntimeClass: "kata.qemu", Handler: "kata-clh",
		Scheduling: `{"nodeSelector":{"kata":"true"},"tolerations":[{"key":"kata","operator":"Exists"}]}`}, nil))
	classes, text := applied(t, j)
	must.That(t, len(classes) == 2, "%d of them:\n%s", len(classes), text)
	ours, beside := classes[0], classes[1]
	fixed := ours.Overhead.PodFixed
	check.That(t, ours.Name == "kata.qemu" && ours.Handler == "kata-clh" && fixed.Memory().Value() == 156*mi && fixed.Cpu().MilliValue() == 250 &&
		ours.Scheduling != nil && ours.Scheduling.NodeSelector["kata"] == "true" && len(ours.Scheduling.Tolerations) == 1, "of the cluster's: %+v", ours)
	check.That(t, beside.Name == "kata" && beside.Handler == "kata" && beside.Scheduling == nil, "outside a cluster: %+v", beside)
	check.That(t, strings.Contains(text, "# memory: the maximum of a sandbox beyond its workload") && strings.Contains(text, "rounded up to a multiple of 4Mi") &&
		strings.Contains(text, "rounded up to a multiple of 10m"), "it does not say what was rounded:\n%s", text)
}

func TestTargetOutsideClusterHasNoRuntimeClass(t *testing.T) {
	t.Parallel()
	const why = "no RuntimeClass: a kubelet does not run runc; use cri+ENGINE/runc"
	bare := func(w *oversight) { w.kinds, w.names = []string{"oci"}, []string{"runc"} }
	j := weighed(t, oversee(bare))
	err := writeClasses(new(bytes.Buffer), j)
	check.That(t, err != nil && err.Error() == why, "%v", err)
	if page := section(t, j, "recommended overhead"); !strings.Contains(page, why) || strings.Contains(page, "apiVersion") || j.Classes[0].Memory != 8*mi {
		t.Errorf("%d MiB:\n%s", j.Classes[0].Memory/mi, page)
	}
	j = weighed(t, oversee(func(w *oversight) {
		w.kinds, w.names = []string{"oci", "cri"}, []string{"runc", "cri+containerd/runc"}
	}))
	classes, text := applied(t, j)
	check.That(t, len(classes) == 1 && !strings.Contains(text, "of runc") && strings.Contains(section(t, j, "recommended RuntimeClasses"), why), "%s", text)
}

func TestUnprintableSchedulingIsOmitted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"pseudonym": "text-1", "no object": `["a"]`, "two values": `{} {}`, "another document": "{}\n---\n{}", "bidirectional text": `{"nodeSelector":{"a":"` + "\u202e" + `"}}`,
	} {
		classes, _ := applied(t, weighed(t, inCluster(&record.Kubernetes{RuntimeClass: "kata", Handler: "kata", Scheduling: text}, nil)))
		check.That(t, len(classes) == 2 && classes[0].Scheduling == nil, "%s: %+v", name, classes[0])
	}
}

func TestNoFiguresMeansNoRuntimeClass(t *testing.T) {
	t.Parallel()
	j := weighed(t, inCluster(nil, func(o *oversight) {
		o.change = func(rec *record.Record) { rec.Readings, rec.Series = nil, nil }
	}))
	err := Instrument.Formats[FormatRuntimeClass].Write(new(bytes.Buffer), j)
	check.That(t, err != nil, "the format was written without figures")
}

func TestDeclaredOverheadIsChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		is     *record.Kubernetes
		checks int
		answer Answer
	}{
		"enough":                   {&record.Kubernetes{RuntimeClass: "kata", Overhead: &record.Amounts{CPU: 250, Memory: 160 * mi}}, 1, Enough},
		"not enough":               {&record.Kubernetes{RuntimeClass: "kata", Overhead: &record.Amounts{CPU: 250, Memory: 100 * mi}}, 1, NotEnough},
		"class without overhead":   {&record.Kubernetes{RuntimeClass: "kata"}, 1, NotEnough},
		"pods without a class":     {&record.Kubernetes{}, 0, ""},
		"target outside a cluster": {nil, 0, ""},
		"class with CPU only":      {&record.Kubernetes{RuntimeClass: "kata", Overhead: &record.Amounts{CPU: 250}}, 1, NotEnough},
	} {
		j := weighed(t, inCluster(tt.is, func(o *oversight) { o.plan.Check = &PodFixed{Declared: true} }))
		check.That(t, len(j.Check) == tt.checks && (tt.checks == 0 || j.Check[0].Answer == tt.answer && j.Check[0].Target == "kubernetes/kata"),
			"%s: %+v", name, j.Check)
	}
}

func TestDeclaredSelectsTheDeclaredOverhead(t *testing.T) {
	t.Parallel()
	o := Defaults()
	o.Check = &PodFixed{Declared: true}
	text, err := json.Marshal(o)
	var back Options
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	check.That(t, err == nil && back.Check != nil && *back.Check == *o.Check && strings.Contains(string(text), `"check":"declared"`),
		"%s %+v %v", text, back.Check, err)
	o.Allocatable = &PodFixed{Declared: true}
	err = option.Check(&o)
	check.That(t, err != nil, "allocatable accepted the value declared")
}

func TestRequestsAreSharesOfNodeAllocatable(t *testing.T) {
	t.Parallel()
	is := &record.Kubernetes{RuntimeClass: "kata", Overhead: &record.Amounts{CPU: 250, Memory: 160 * mi}, Allocatable: &record.Amounts{CPU: 7800, Memory: 6500 * mi}}
	figures := weighed(t, inCluster(is, func(o *oversight) { o.plan.Limits.CPU, o.plan.Limits.Memory = 1, 1<<30 })).Figures()
	for resource, want := range map[string]float64{"cpu": 1.25 / 7.8, "memory": 1184. / 6500} {
		f := figure.Find(figures, "request-share", "target", "kubernetes/kata", "overhead", "declared", "resource", resource)
		check.Equal(t, resource, f.Value, want)
	}
}

func TestPodStatusAndKubectlTopAreFigures(t *testing.T) {
	t.Parallel()
	figures := weighed(t, inCluster(&record.Kubernetes{}, func(o *oversight) {
		o.plan.Rounds = 2
		o.reading = func(r *record.Reading) {
			if r.Moment != record.MomentEnd || r.Target != "kubernetes/kata" {
				return
			}
			r.Pods = []record.Pod{{Restarts: 2 * r.Round, OOMKilled: r.Round, Evicted: r.Round == 1}}
			r.Engine = []record.Statistic{{Source: "kubectl top", Memory: mi, CPU: -1, Rate: new(0.25)}}
		}
	})).Figures()
	for quantity, want := range map[string]float64{"container-restarts": 2, "containers-oom-killed": 1, "pods-evicted": 1} {
		f := figure.Find(figures, quantity, "target", "kubernetes/kata")
		check.That(t, f.Value == want && len(f.Rounds) == 2, "%s: %+v", quantity, f)
		f = figure.Find(figures, quantity, "target", "containerd/kata")
		check.That(t, !f.Known(), "%s outside a cluster: %+v", quantity, f)
	}
	f := figure.Find(figures, "engine-cpu", "source", "kubectl top", "of", "reported")
	check.That(t, f.Value == 0.25, "%+v", f)
}
