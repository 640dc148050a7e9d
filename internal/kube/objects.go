package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// ManagedBy is the label whose value, tare, says who made something, and by whom it may
// be removed.
const ManagedBy = "app.kubernetes.io/managed-by"

// Made selects what runs made, whichever.
const Made = engine.RunLabel + "," + ManagedBy + "=tare"

// Labels are those of everything that a run makes in a cluster.
func Labels(runID string) map[string]string {
	return map[string]string{engine.RunLabel: runID, ManagedBy: "tare"}
}

// Condition is the one of a kind among those of a pod, the zero one where there is none.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// NodeReady is the condition Ready of a node, the zero one where there is none.
func NodeReady(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// Container is the status of a pod's container, the zero one where there is none.
func Container(p *corev1.Pod, name string) corev1.ContainerStatus {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == name {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// OnNode leaves the scheduler one node, as a DaemonSet does: naming that in the pod
// itself would pass the scheduler over.
func OnNode(name string) *corev1.Affinity {
	is := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{is}}}}}}
}
