package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

const (
	// grace is how long (s) a workload may take to end by itself, as elsewhere in tare;
	// it ends at once.
	grace = 10
	// container is the name of the only one in a pod.
	container = "probe"
)

// pod is the manifest of a pod with the workload in it.
func (d *driver) pod(name string, place engine.Place) *corev1.Pod {
	no, seconds := false, int64(grace)
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		TerminationGracePeriodSeconds: &seconds, HostNetwork: d.e.Network == subject.NetworkHost,
		Containers: []corev1.Container{{
			Name: container, Image: d.ref, ImagePullPolicy: corev1.PullNever, Args: []string{name}, Resources: resources(d.env.Limits),
		}},
	}
	if d.e.Node != "" {
		spec.Affinity = kube.OnNode(d.e.Node)
	}
	if d.class != nil {
		spec.RuntimeClassName = &d.class.Name
	}
	volume := corev1.Volume{Name: "data"}
	switch {
	case place.Folder != "":
		volume.HostPath = &corev1.HostPathVolumeSource{Path: place.Folder}
	case d.env.Workload.Tmpfs > 0:
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(d.env.Workload.Tmpfs, resource.BinarySI)}
	}
	if volume.VolumeSource != (corev1.VolumeSource{}) {
		spec.Volumes = []corev1.Volume{volume}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: volume.Name, MountPath: subject.VolumePath}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace, Labels: kube.Labels(d.env.RunID)},
		Spec:       spec,
	}
}

// resources are limits. What is asked for is next to nothing: it would be as much as
// the limits by default, and a batch not fit on its node.
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
