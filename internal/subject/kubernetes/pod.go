package kubernetes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/setting"
)

const (
	// grace is the time (s) from SIGTERM to SIGKILL, as for all targets; the workload ends at once.
	grace = 10
	// container is the name of a pod's only container.
	container = "probe"
)

// pod returns the manifest of a pod with the workload.
func (d *driver) pod(name string, place engine.Place) *corev1.Pod {
	no, seconds := false, int64(grace)
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		TerminationGracePeriodSeconds: &seconds, HostNetwork: d.e.Network == subject.NetworkHost,
		Containers: []corev1.Container{{
			Name: container, Image: d.ref, ImagePullPolicy: corev1.PullNever, Args: literal(d.env.Workload.Args(name)), Resources: resources(d.env.Limits),
			ReadinessProbe: d.readiness,
		}},
	}
	if d.e.Node != "" {
		spec.Affinity = kube.OnNode(d.e.Node)
	}
	if d.class != nil {
		spec.RuntimeClassName = &d.class.Name
	}
	mount := func(path string, readOnly bool, of corev1.VolumeSource) {
		name := fmt.Sprintf("volume-%d", len(spec.Volumes))
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: of})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	switch {
	case place.Folder != "":
		mount(subject.VolumePath, false, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: place.Folder}})
	case d.env.Workload.Tmpfs > 0:
		mount(subject.VolumePath, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(d.env.Workload.Tmpfs, resource.BinarySI)}})
	}
	if c := d.env.Workload.Cargo; c != nil {
		for _, m := range c.Mounts {
			source, destination, readOnly := m.Parts()
			mount(destination, readOnly, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: source}})
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace, Labels: kube.Labels(d.env.RunID)},
		Spec:       spec,
	}
}

// literal escapes words of a command, in which a kubelet would expand $(VARIABLE).
func literal(words []string) (out []string) {
	for _, word := range words {
		out = append(out, strings.ReplaceAll(word, "$", "$$"))
	}
	return out
}

// readiness returns the probe for the pod's condition Ready, once a second; nil if readiness is not
// requested. A kubelet accepts a status from 200 to 399.
func readiness(asked setting.Ready) (*corev1.Probe, error) {
	if asked == "" {
		return nil, nil
	}
	is, err := asked.Parse()
	if err != nil {
		return nil, err
	}
	p := &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1}
	port := intstr.FromInt32(int32(is.Port))
	switch {
	case is.By == setting.ReadyTCP:
		p.TCPSocket = &corev1.TCPSocketAction{Port: port}
	case is.By == setting.ReadyHTTP && is.Status >= 200 && is.Status < 400:
		p.HTTPGet = &corev1.HTTPGetAction{Path: is.Path, Port: port}
	case is.By == setting.ReadyExec:
		p.Exec = &corev1.ExecAction{Command: literal(is.Command)}
	default:
		return nil, fmt.Errorf("--ready %s: a kubelet supports tcp:PORT, exec:/PROGRAM, and http:PORT/PATH with a status from 200 to 399: %w", asked, subject.ErrUnsupported)
	}
	return p, nil
}

// resources returns the limits. Requests are minimal: by default they equal the limits, and a batch
// would not fit on its node.
func resources(l subject.Limits) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")},
	}
	if l.Memory > 0 {
		r.Limits[corev1.ResourceMemory] = *resource.NewQuantity(l.Memory, resource.BinarySI)
	}
	if l.CPU > 0 {
		r.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(l.CPU*1000+0.5), resource.DecimalSI)
	}
	return r
}
