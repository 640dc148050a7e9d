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

// OnNode leaves the scheduler one node, as a DaemonSet does: naming that in the pod
// itself would pass the scheduler over.
func OnNode(name string) *corev1.Affinity {
	is := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{is}}}}}}
}
