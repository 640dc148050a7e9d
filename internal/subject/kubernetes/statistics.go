package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// Who says what pods use: the kubelet in its summary, of which evictions are decided, and
// metrics.k8s.io, which kubectl top shows and an autoscaler goes by.
const (
	ofKubelet = "kubelet summary"
	ofTop     = "kubectl top"
)

// Statistics implements subject.Reporter. Both tell what was collected some time ago: a
// kubelet looks every 10 seconds or so, and metrics-server asks it every 15.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	kubelet, errOne := s.StatisticsFrom(ctx, ofKubelet, s.kubeletSays)
	top, errTwo := s.StatisticsFrom(ctx, ofTop, s.topSays)
	return append(kubelet, top...), errors.Join(errOne, errTwo)
}

// summary is the part of a kubelet's that matters here (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
type summary struct {
	Pods []struct {
		Ref    reference `json:"podRef"`
		Memory struct {
			Time       time.Time `json:"time"`
			WorkingSet *uint64   `json:"workingSetBytes"`
		} `json:"memory"`
		CPU struct {
			Time  time.Time `json:"time"`
			Usage *uint64   `json:"usageCoreNanoSeconds"`
		} `json:"cpu"`
	} `json:"pods"`
}

type reference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func (d *driver) kubeletSays(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	told, ids := unknown(states)
	for i := range d.nodes {
		var says summary
		path := "/api/v1/nodes/" + url.PathEscape(d.nodes[i].Name) + "/proxy/stats/summary"
		if err := d.get(ctx, path, "", &says); err != nil {
			return nil, kube.Explain(err, "ask the kubelet of "+d.nodes[i].Name+" for its summary")
		}
		for _, p := range says.Pods {
			looked := p.CPU.Usage == nil || *p.CPU.Usage > 0 // of a new pod it tells zeros until it has
			if id := ids[p.Ref.Name]; id != "" && p.Ref.Namespace == d.Namespace && looked {
				told[id] = engine.Usage{Memory: known(p.Memory.WorkingSet), CPU: known(p.CPU.Usage), Time: since(p.CPU.Time)}
			}
		}
	}
	return told, nil
}

// metrics is the part of a list of metrics.k8s.io/v1beta1 that matters here.
type metrics struct {
	Items []struct {
		Metadata   reference `json:"metadata"`
		Containers []struct {
			Usage struct {
				CPU    resource.Quantity `json:"cpu"`
				Memory resource.Quantity `json:"memory"`
			} `json:"usage"`
		} `json:"containers"`
	} `json:"items"`
}

// errTop is of most clusters: few come with what serves it.
var errTop = errors.New("metrics.k8s.io is not served: kubectl top and autoscalers know nothing of these pods; metrics-server serves it")

// topSays sums the containers of a pod up, as kubectl top does.
func (d *driver) topSays(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	var says metrics
	err := d.get(ctx, topPath+"/namespaces/"+url.PathEscape(d.Namespace)+"/pods", engine.RunLabel+"="+d.env.RunID, &says)
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, errTop
	}
	if err != nil {
		return nil, kube.Explain(err, "ask metrics.k8s.io for the pods")
	}
	told, ids := unknown(states)
	for i := range says.Items {
		p := &says.Items[i]
		id := ids[p.Metadata.Name]
		if id == "" || len(p.Containers) == 0 {
			continue
		}
		used, rate := engine.Usage{CPU: -1}, 0.0
		for k := range p.Containers {
			used.Memory += max(p.Containers[k].Usage.Memory.Value(), 0)
			rate += max(p.Containers[k].Usage.CPU.AsApproximateFloat64(), 0)
		}
		used.Rate = &rate
		told[id] = used
	}
	return told, nil
}

const topPath = "/apis/metrics.k8s.io/v1beta1"

// unknown says nothing of each container yet, and which id is in the pod of a name.
func unknown(states []engine.State) (told map[string]engine.Usage, ids map[string]string) {
	told, ids = map[string]engine.Usage{}, map[string]string{}
	for _, s := range states {
		told[s.ID], ids[s.Name] = engine.Usage{Memory: -1, CPU: -1}, s.ID
	}
	return told, ids
}

// mostSaid is how long an answer may be: a kubelet's, of hundreds of pods, is some megabytes.
const mostSaid = 64 << 20

// get asks the API server for what client-go has no call for.
func (t *Target) get(ctx context.Context, path, selector string, into any) error {
	request := t.REST().Get().AbsPath(path)
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	return json.NewDecoder(io.LimitReader(stream, mostSaid)).Decode(into)
}

// known is a figure, -1 where there is none that a machine can have.
func known(v *uint64) int64 {
	if v == nil || *v > math.MaxInt64 {
		return -1
	}
	return int64(*v)
}

// since is the time of day at which a kubelet of this machine looked, on tare's clock; 0
// where it does not say, or what cannot be.
func since(at time.Time) int64 {
	age := time.Since(at)
	if at.IsZero() || age < -time.Second || age > time.Hour {
		return 0
	}
	return machine.Now() - int64(max(age, 0))
}
