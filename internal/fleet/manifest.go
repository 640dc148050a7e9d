package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/kube"
)

// Spec is all that manifests are made of: the same gives the same.
type Spec struct {
	RunID, Namespace, Image string

	PlanName string
	Plan     []byte
	Needs    Needs

	Tolerations   []corev1.Toleration
	PriorityClass string
	Requests      corev1.ResourceList
	Deadline      time.Duration
	Results       Results
	Schedule      string // when the plan is done again and again, as cron has it; "" is once
}

// Needs are what a plan takes of a node beyond a pod that may do nothing there.
type Needs struct {
	Privileged bool // to make namespaces, mounts and cgroups
	Host       bool // the node's own programs, sockets, processes and folders
	Network    bool // the node's network
}

// Need adds what one measure of a plan takes: of host alone nothing, of floor its rights,
// of whatever else the node.
func (n *Needs) Need(instrument string, targets []string) {
	other := func(t string) bool { return t != "host" && t != "floor" }
	own := instrument == lifecycle.Name && len(targets) > 0
	if own && !slices.ContainsFunc(targets, other) {
		n.Privileged = n.Privileged || slices.Contains(targets, "floor")
		return
	}
	n.Privileged, n.Host = true, true
	// podman makes networks where it is called, and a load goes through the node's.
	n.Network = n.Network || instrument == bpf.Name || len(targets) == 0 || slices.ContainsFunc(targets, func(t string) bool { return strings.HasPrefix(t, "podman") })
}

// String says what a pod gets.
func (n Needs) String() string {
	switch {
	case n.Network:
		return "privileged, in the node's mounts, processes and network"
	case n.Host:
		return "privileged, in the node's mounts and processes"
	case n.Privileged:
		return "privileged"
	}
	return "restricted"
}

// Results says where records go: here, if nothing is said.
type Results struct {
	Claim  string // a PersistentVolumeClaim
	Path   string // below it
	Bucket string // an address in an object store, s3://BUCKET/FOLDER
	Secret string // with what the store wants to know
}

// ParseResults reads what a user wrote: nothing, pvc:NAME/path, or s3://BUCKET/FOLDER.
func ParseResults(s, secret string) (r Results, err error) {
	r.Secret = secret
	switch isBucket := strings.HasPrefix(s, "s3://"); {
	case isBucket != (secret != ""):
		return r, errors.New("--results-secret: it is of an object store, --results s3://BUCKET/FOLDER, which needs one")
	case isBucket:
		r.Bucket = strings.TrimSuffix(s, "/")
		return r, nil
	case s == "":
		return r, nil
	}
	rest, ok := strings.CutPrefix(s, "pvc:")
	r.Claim, r.Path, _ = strings.Cut(rest, "/")
	if r.Path = strings.Trim(path.Clean("/"+r.Path), "/"); !ok || r.Claim == "" {
		return r, fmt.Errorf("--results: %q is no place: write pvc:NAME/path or s3://BUCKET/FOLDER", s)
	}
	return r, nil
}

// Here says that records are fetched.
func (r Results) Here() bool { return r.Claim == "" && r.Bucket == "" }

// ParseToleration reads a toleration as kubectl taint writes taints: KEY, KEY:EFFECT,
// KEY=VALUE, KEY=VALUE:EFFECT, or * for every taint.
func ParseToleration(s string) (t corev1.Toleration, err error) {
	key, effect, _ := strings.Cut(s, ":")
	t.Effect = corev1.TaintEffect(effect)
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return t, fmt.Errorf("--toleration: %q is no effect: NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
	var valued bool
	t.Key, t.Value, valued = strings.Cut(key, "=")
	t.Operator = corev1.TolerationOpExists
	switch {
	case t.Key == "" || valued && t.Key == "*":
		return t, fmt.Errorf("--toleration: %q has no key: write KEY=VALUE:EFFECT, or * for every taint", s)
	case t.Key == "*":
		t.Key = ""
	case valued:
		t.Operator = corev1.TolerationOpEqual
	}
	return t, nil
}

// ParseRequests reads requests of CPU, memory and whatever else, by their names.
func ParseRequests(given map[string]string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, value := range given {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("--requests: %s=%s: %w", name, value, err)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

// The two containers of a pod, and where tare is in the image.
const (
	runnerName = "run"     // does the plan
	keeperName = "records" // holds what it recorded until that is fetched
	Program    = "/tare"
)

// Where volumes are in both containers.
const (
	planDir   = "/plan"
	recordDir = "/records"
	workDir   = "/work"
	cgroupDir = "/sys/fs/cgroup"

	Document = workDir + "/document" // the folder that a plan makes
)

func recordPath(node string) string { return recordDir + "/" + FileName(node) }

// maxPlan leaves room for the rest of an object of 1 MiB.
const maxPlan = 1000 << 10

// Check says what cannot be made a manifest.
func (s *Spec) Check() error {
	switch {
	case len(s.Plan) > maxPlan:
		return fmt.Errorf("the plan has %d bytes, and a ConfigMap holds a MiB", len(s.Plan))
	case s.Deadline < time.Minute:
		return errors.New("--deadline: a Job is given a minute at least")
	case s.Schedule != "":
		return checkSchedule(s.Schedule)
	}
	return nil
}

// checkSchedule refuses what the API server would, by its own parser, and what never comes.
func checkSchedule(text string) error {
	if strings.Contains(text, "TZ") {
		return fmt.Errorf("--schedule: %q names a time zone, which a CronJob does not take there", text)
	}
	schedule, err := cron.ParseStandard(text)
	if err == nil && schedule.Next(time.Now()).IsZero() {
		err = errors.New("no such day comes within five years")
	}
	if err != nil {
		return fmt.Errorf("--schedule: %q: %w; write minute, hour, day, month and day of the week as cron has them: '0 3 * * *' is every night at three", text, err)
	}
	return nil
}

// IDOf is a run's id that the same manifests have each time they are made: those that are
// kept and applied by others.
func IDOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

func short(s string) string { return IDOf(s)[:5] }

func (s *Spec) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: kube.Labels(s.RunID)}
}

// ConfigMap is that of the plan.
func (s *Spec) ConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: s.meta("tare-" + s.RunID), Data: map[string]string{safe(s.PlanName): string(s.Plan)},
	}
}

// jobName is that of a node's Job or CronJob, of which Jobs' and pods' names are made: the
// API server takes 52 bytes for a CronJob.
func jobName(runID, node string) string {
	clean := strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(safe(node)))
	if clean != node || len(clean) > 38 {
		clean = strings.Trim(clean[:min(len(clean), 32)], "-") + "-" + short(node)
	}
	return "tare-" + runID + "-" + clean
}

// Job is that of a node: one pod, once, which is the node's whatever it is called.
func (s *Spec) Job(node string) *batchv1.Job {
	name := jobName(s.RunID, node)
	once, one := int32(0), int32(1)
	deadline, kept := int64(s.Deadline/time.Second), int32(time.Hour/time.Second)
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: s.meta(name),
		Spec: batchv1.JobSpec{
			Completions: &one, Parallelism: &one, BackoffLimit: &once,
			ActiveDeadlineSeconds: &deadline, TTLSecondsAfterFinished: &kept,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: kube.Labels(s.RunID)}, Spec: s.pod(node)},
		},
	}
}

// CronJob is that of a node, whose Jobs begin by the schedule and never two at once: they
// would measure each other.
func (s *Spec) CronJob(node string) *batchv1.CronJob {
	job, kept, late := s.Job(node), int32(3), int64(10*time.Minute/time.Second)
	job.Spec.TTLSecondsAfterFinished = nil // so that in the morning one sees what the night brought
	return &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
		ObjectMeta: job.ObjectMeta,
		Spec: batchv1.CronJobSpec{
			Schedule: s.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			StartingDeadlineSeconds:    &late, // a control plane that was down at night must not start it by day
			SuccessfulJobsHistoryLimit: &kept, FailedJobsHistoryLimit: &kept,
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: kube.Labels(s.RunID)}, Spec: job.Spec},
		},
	}
}

func (s *Spec) pod(node string) corev1.PodSpec {
	no, grace := false, int64(60) // in which a plan that is ended removes what it made on the node
	p := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		TerminationGracePeriodSeconds: &grace,
		HostPID:                       s.Needs.Host, HostNetwork: s.Needs.Network,
		Tolerations: s.Tolerations, PriorityClassName: s.PriorityClass,
		Affinity:        kube.OnNode(node),
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Volumes: []corev1.Volume{
			{Name: "plan", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tare-" + s.RunID}}}},
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "records", VolumeSource: s.Results.volume()},
		},
	}
	user := int64(0)
	if !s.Needs.Privileged {
		user = 65532
	}
	none := !s.Needs.Privileged
	p.SecurityContext.RunAsUser, p.SecurityContext.RunAsGroup, p.SecurityContext.FSGroup, p.SecurityContext.RunAsNonRoot = &user, &user, &user, &none
	if s.Needs.Privileged && !s.Needs.Host { // with cgroup v1 a container sees its own group only, in which none can be made
		p.Volumes = append(p.Volumes, corev1.Volume{Name: "cgroup", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: cgroupDir}}})
	}
	if s.Results.Here() { // first: it is there when the plan is done
		p.Containers = append(p.Containers, corev1.Container{
			Name: keeperName, Image: s.Image, Command: []string{Program, "fleet", "keep"},
			SecurityContext: restricted(), VolumeMounts: []corev1.VolumeMount{{Name: "records", MountPath: recordDir, ReadOnly: true}},
		})
	}
	p.Containers = append(p.Containers, s.runner(node))
	return p
}

// runner is the container that does the plan.
func (s *Spec) runner(node string) corev1.Container {
	c := corev1.Container{
		Name: runnerName, Image: s.Image, SecurityContext: restricted(),
		Command:   []string{Program, "fleet", "node", planDir + "/" + safe(s.PlanName), "--name", node, "-o", recordPath(node)},
		Resources: corev1.ResourceRequirements{Requests: s.Requests},
		Env: []corev1.EnvVar{
			{Name: "TMPDIR", Value: workDir}, {Name: "XDG_DATA_HOME", Value: workDir}, {Name: "TARE_DATA_DIR", Value: workDir + "/data"}, {Name: "TARE_STATE_DIR", Value: workDir + "/state"},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "plan", MountPath: planDir, ReadOnly: true},
			{Name: "work", MountPath: workDir},
			{Name: "records", MountPath: recordDir, SubPath: s.Results.Path},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if s.Needs.Privileged {
		yes := true
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	}
	if s.Needs.Privileged && !s.Needs.Host {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cgroup", MountPath: cgroupDir})
	}
	if s.Needs.Host {
		c.Command, c.Env = append(c.Command, "--host"), c.Env[:2]
	}
	if s.Results.Bucket != "" {
		folder := s.Results.Bucket
		if s.Schedule != "" { // nothing is written over, and no two pods are called the same
			folder += "/$(POD)"
			c.Env = append(c.Env, corev1.EnvVar{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
		}
		c.Command = append(c.Command, "-o", folder+"/"+FileName(node)) // the last counts
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Results.Secret}}}}
	}
	return c
}

// restricted is what Pod Security's level of that name wants of a container.
func restricted() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

func (r Results) volume() corev1.VolumeSource {
	if r.Claim == "" {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.Claim}}
}

// Render writes the manifests as YAML, for whoever applies them. They do not say that
// tare manages them, so that tare clean leaves them alone.
func (s *Spec) Render(w io.Writer, nodes []string) error {
	objects := []runtime.Object{s.ConfigMap()}
	for _, node := range nodes {
		if s.Schedule != "" {
			objects = append(objects, s.CronJob(node))
		} else {
			objects = append(objects, s.Job(node))
		}
	}
	var out bytes.Buffer
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(fields, "status")
		unmanaged(fields)
		text, err := yaml.Marshal(fields)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// unmanaged takes the label of tare's away, and what nobody set.
func unmanaged(fields map[string]any) {
	for key, value := range maps.Clone(fields) {
		if inner, ok := value.(map[string]any); ok {
			unmanaged(inner)
		}
		if key == kube.ManagedBy || key == "creationTimestamp" && value == nil {
			delete(fields, key)
		}
	}
}
