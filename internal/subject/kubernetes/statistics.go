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

// The sources of usage: the kubelet's summary, the basis of evictions, and metrics.k8s.io,
// which kubectl top shows and autoscalers use.
const (
	ofKubelet = "kubelet summary"
	ofTop     = "kubectl top"
)

// Statistics implements subject.Reporter. Both sources have past readings: a kubelet reads every 10
// seconds or so, metrics-server every 15.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	kubelet, errOne := s.StatisticsFrom(ctx, ofKubelet, s.kubeletSays)
	top, errTwo := s.StatisticsFrom(ctx, ofTop, s.topSays)
	return append(kubelet, top...), errors.Join(errOne, errTwo)
}

// summary is the relevant part of a kubelet's summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
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
	usage, ids := unknown(states)
	for i := range d.nodes {
		var says summary
		path := "/api/v1/nodes/" + url.PathEscape(d.nodes[i].Name) + "/proxy/stats/summary"
		if err := d.get(ctx, path, "", &says); err != nil {
			return nil, kube.Explain(err, "get the summary of the kubelet of "+d.nodes[i].Name)
		}
		for _, p := range says.Pods {
			looked := p.CPU.Usage == nil || *p.CPU.Usage > 0 // a new pod has zeros until the first reading
			if id := ids[p.Ref.Name]; id != "" && p.Ref.Namespace == d.Namespace && looked {
				usage[id] = engine.Usage{Memory: known(p.Memory.WorkingSet), CPU: known(p.CPU.Usage), Time: since(p.CPU.Time)}
			}
		}
	}
	return usage, nil
}

// metrics is the relevant part of a list of metrics.k8s.io/v1beta1.
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

// errTop is frequent: few clusters come with metrics-server.
var errTop = errors.New("metrics.k8s.io is not served, so kubectl top and autoscalers have no figures for these pods: install metrics-server")

// topSays sums up the containers of a pod, as kubectl top does.
func (d *driver) topSays(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	var says metrics
	err := d.get(ctx, topPath+"/namespaces/"+url.PathEscape(d.Namespace)+"/pods", engine.RunLabel+"="+d.env.RunID, &says)
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, errTop
	}
	if err != nil {
		return nil, kube.Explain(err, "get the pods from metrics.k8s.io")
	}
	usage, ids := unknown(states)
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
		usage[id] = used
	}
	return usage, nil
}

const topPath = "/apis/metrics.k8s.io/v1beta1"

// unknown returns unknown usage for all containers, and their ids by pod name.
func unknown(states []engine.State) (usage map[string]engine.Usage, ids map[string]string) {
	usage, ids = map[string]engine.Usage{}, map[string]string{}
	for _, s := range states {
		usage[s.ID], ids[s.Name] = engine.Usage{Memory: -1, CPU: -1}, s.ID
	}
	return usage, ids
}

// maxAnswer bounds an answer. A kubelet's, with hundreds of pods, has some megabytes.
const maxAnswer = 64 << 20

// get makes a request for which client-go has no method.
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
	return json.NewDecoder(io.LimitReader(stream, maxAnswer)).Decode(into)
}

// known converts a figure; -1 if it is missing or impossible.
func known(v *uint64) int64 {
	if v == nil || *v > math.MaxInt64 {
		return -1
	}
	return int64(*v)
}

// since converts the time of a reading on this machine's kubelet to tare's clock; 0 if it is
// missing or implausible.
func since(at time.Time) int64 {
	age := time.Since(at)
	if at.IsZero() || age < -time.Second || age > time.Hour {
		return 0
	}
	return machine.Now() - int64(max(age, 0))
}
