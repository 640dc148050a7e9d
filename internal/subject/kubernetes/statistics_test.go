package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// answering returns a driver whose API server serves only these paths.
func answering(t *testing.T, answers map[string]string) *driver {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		switch {
		case !ok:
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
		case text == "":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nodes \"n\" is forbidden: User \"u\" cannot get resource \"nodes/proxy\"","details":{"kind":"nodes"}}`, http.StatusForbidden)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(server.Close)
	api := must.Get(kube.NewAPI(&rest.Config{Host: server.URL}))(t)
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	return &driver{Target: &Target{Client: &kube.Client{API: api, Namespace: "ns"}, nodes: []corev1.Node{node}}, env: subject.Env{RunID: "r"}}
}

const (
	summaryPath = "/api/v1/nodes/n/proxy/stats/summary"
	podsPath    = topPath + "/namespaces/ns/pods"
)

var two = []engine.State{{Name: "a", ID: "A"}, {Name: "b", ID: "B"}}

func TestKubeletSummaryIsReadByPod(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-5 * time.Second).UTC().Format(time.RFC3339Nano)
	d := answering(t, map[string]string{summaryPath: `{"node":{"nodeName":"n"},"pods":[
		{"podRef":{"name":"a","namespace":"other","uid":"0"},"memory":{"workingSetBytes":7}},
		{"podRef":{"name":"a","namespace":"ns","uid":"1"},"cpu":{"time":"` + at + `","usageCoreNanoSeconds":31000000},"memory":{"time":"` + at + `","workingSetBytes":5242880}},
		{"podRef":{"name":"b","namespace":"ns","uid":"2"},"cpu":{"time":"` + at + `","usageCoreNanoSeconds":0},"memory":{"time":"` + at + `","workingSetBytes":0}},
		{"podRef":{"name":"c","namespace":"ns","uid":"3"},"memory":{"workingSetBytes":9}}]}`})
	usage := must.Get(d.kubeletSays(t.Context(), two))(t)
	age := machine.Now() - usage["A"].Time
	check.That(t, usage["A"].Memory == 5<<20 && usage["A"].CPU == 31000000 && age >= int64(4*time.Second) && age <= int64(time.Minute),
		"%+v, %v old", usage["A"], time.Duration(age))
	check.That(t, len(usage) == 2 && usage["B"] == (engine.Usage{Memory: -1, CPU: -1}), "without a reading: %+v", usage)
}

func TestTopSumsUpContainers(t *testing.T) {
	t.Parallel()
	d := answering(t, map[string]string{podsPath: `{"kind":"PodMetricsList","items":[{"metadata":{"name":"a","namespace":"ns"},"window":"15s",
		"containers":[{"name":"x","usage":{"cpu":"250m","memory":"4Mi"}},{"name":"y","usage":{"cpu":"500000n","memory":"1024Ki"}}]}]}`})
	usage, err := d.topSays(t.Context(), two)
	check.That(t, err == nil && usage["A"].Memory == 5<<20 && usage["A"].CPU == -1 && usage["A"].Rate != nil && *usage["A"].Rate == 0.2505 &&
		usage["B"].Rate == nil, "%+v, %v", usage, err)
}

func TestMissingMetricsAndRefusalsAreErrors(t *testing.T) {
	t.Parallel()
	if usage, err := answering(t, nil).topSays(t.Context(), two); usage != nil || !errors.Is(err, errTop) {
		t.Errorf("no metrics.k8s.io: %v, %v", usage, err)
	}
	_, err := answering(t, map[string]string{summaryPath: ""}).kubeletSays(t.Context(), two)
	check.Error(t, err, "a Role must allow it")
	for name, text := range map[string]string{"no JSON": "x", "other type": `{"pods":3}`, "invalid time": `{"pods":[{"podRef":{"name":"a"},"cpu":{"time":"soon"}}]}`} {
		_, err := answering(t, map[string]string{summaryPath: text}).kubeletSays(t.Context(), two)
		check.That(t, err != nil, "%s was accepted", name)
	}
}

func TestImplausibleTimesAreUnknown(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{"none": {}, "tomorrow": time.Now().Add(time.Hour), "yesterday": time.Now().Add(-24 * time.Hour)} {
		check.Equal(t, name, since(at), 0)
	}
}

func TestPodStateReadsTheStatus(t *testing.T) {
	t.Parallel()
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: oomKilled}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   record.Pod
	}{
		"running":                {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{}}}, record.Pod{Lane: 3}},
		"evicted by the kubelet": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, record.Pod{Lane: 3, Evicted: true}},
		"evicted by a drain": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
			record.Pod{Lane: 3, Evicted: true}},
		"killed":               {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: ended}}}, record.Pod{Lane: 3, OOMKilled: 1}},
		"killed and restarted": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2, LastTerminationState: ended}}}, record.Pod{Lane: 3, Restarts: 2, OOMKilled: 1}},
	} {
		check.Equal(t, name, podState(&corev1.Pod{Status: c.status}, 3), c.want)
	}
}

func TestObjectsAreRecorded(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	node := corev1.Node{Status: corev1.NodeStatus{Allocatable: list("7800m", "6500Mi")}}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata-qemu", Overhead: &nodev1.Overhead{PodFixed: list("250m", "160Mi")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "true"}}}
	got := (&Target{class: class, nodes: []corev1.Node{node}, here: true}).objects()
	check.That(t, got.RuntimeClass == "kata" && got.Handler == "kata-qemu" && *got.Overhead == (record.Amounts{CPU: 250, Memory: 160 << 20}) &&
		*got.Allocatable == (record.Amounts{CPU: 7800, Memory: 6500 << 20}) && got.Scheduling == `{"nodeSelector":{"kata":"true"}}`, "%+v", got)
	got = (&Target{nodes: []corev1.Node{node}}).objects()
	check.That(t, *got == (record.Kubernetes{}), "no RuntimeClass, other machine: %+v", got)
}
