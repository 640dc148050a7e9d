package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// ManagedBy is the label with the tool that created an object and may remove it. Its value
// is tare.
const ManagedBy = "app.kubernetes.io/managed-by"

// Made selects the objects of all runs.
const Made = engine.RunLabel + "," + ManagedBy + "=tare"

// Labels returns the labels of all objects that a run creates in a cluster.
func Labels(runID string) map[string]string {
	return map[string]string{engine.RunLabel: runID, ManagedBy: "tare"}
}

// Condition returns the pod's condition of a type, or the zero value.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	return first(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}

// NodeReady returns the node's condition Ready, or the zero value.
func NodeReady(n *corev1.Node) corev1.NodeCondition {
	return first(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
}

// Container returns the status of a pod's container, or the zero value.
func Container(p *corev1.Pod, name string) corev1.ContainerStatus {
	return first(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
}

// first returns the first element for which is holds, or the zero value.
func first[T any](all []T, is func(T) bool) (one T) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		one = all[i]
	}
	return one
}

// OnNode returns an affinity for one node, like that of a DaemonSet. Setting the pod's
// nodeName would bypass the scheduler.
func OnNode(name string) *corev1.Affinity {
	is := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{is}}}}}}
}
