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

// Spec is the input of manifests. Equal specs give equal manifests.
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
	Schedule      string // for a repeated run, in cron format; "" is once
}

// Needs are the privileges of a plan on a node.
type Needs struct {
	Privileged bool // to make namespaces, mounts and cgroups
	Host       bool // the node's programs, sockets, processes and folders
	Network    bool // the node's network
}

// Need adds the needs of one measure of a plan: nothing for host, privileges for floor, the
// node for other targets.
func (n *Needs) Need(instrument string, targets []string) {
	other := func(t string) bool { return t != "host" && t != "floor" }
	if instrument == lifecycle.Name && len(targets) > 0 && !slices.ContainsFunc(targets, other) {
		n.Privileged = n.Privileged || slices.Contains(targets, "floor")
		return
	}
	n.Privileged, n.Host = true, true
	// podman makes networks in its caller's namespace, and a load uses the node's network.
	n.Network = n.Network || instrument == bpf.Name || len(targets) == 0 || slices.ContainsFunc(targets, func(t string) bool { return strings.HasPrefix(t, "podman") })
}

// String describes the privileges of a pod.
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

// Results is the destination of records. The default is this machine.
type Results struct {
	Claim  string // a PersistentVolumeClaim
	Path   string // in the claim
	Bucket string // an address in an object store, s3://BUCKET/FOLDER
	Secret string // with the credentials of the store
}

// ParseResults parses "", pvc:NAME/path, or s3://BUCKET/FOLDER.
func ParseResults(s, secret string) (r Results, err error) {
	r.Secret = secret
	switch isBucket := strings.HasPrefix(s, "s3://"); {
	case isBucket != (secret != ""):
		return r, errors.New("--results-secret: give it together with an object store, --results s3://BUCKET/FOLDER")
	case isBucket:
		r.Bucket = strings.TrimSuffix(s, "/")
		return r, nil
	case s == "":
		return r, nil
	}
	rest, ok := strings.CutPrefix(s, "pvc:")
	r.Claim, r.Path, _ = strings.Cut(rest, "/")
	if r.Path = strings.Trim(path.Clean("/"+r.Path), "/"); !ok || r.Claim == "" {
		return r, fmt.Errorf("--results: invalid destination %q: write pvc:NAME/path or s3://BUCKET/FOLDER", s)
	}
	return r, nil
}

// Here reports whether records are fetched to this machine.
func (r Results) Here() bool { return r.Claim == "" && r.Bucket == "" }

// ParseToleration parses a toleration in the notation of kubectl taint: KEY, KEY:EFFECT,
// KEY=VALUE, KEY=VALUE:EFFECT, or * for every taint.
func ParseToleration(s string) (t corev1.Toleration, err error) {
	key, effect, _ := strings.Cut(s, ":")
	t.Effect = corev1.TaintEffect(effect)
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return t, fmt.Errorf("--toleration: unknown effect %q (supported: NoSchedule, PreferNoSchedule, NoExecute)", effect)
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

// ParseRequests parses requests of CPU, memory and other resources by name.
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

// The two containers of a pod, and the path of tare in the image.
const (
	runnerName = "run"     // runs the plan
	keeperName = "records" // keeps the record until it is fetched
	Program    = "/tare"
)

// Mount points of volumes in both containers.
const (
	planDir   = "/plan"
	recordDir = "/records"
	workDir   = "/work"
	cgroupDir = "/sys/fs/cgroup"

	Document = workDir + "/document" // the folder that a plan makes
)

func recordPath(node string) string { return recordDir + "/" + FileName(node) }

const maxPlan = 1000 << 10 // an object has at most 1 MiB

// Check validates the spec.
func (s *Spec) Check() error {
	switch {
	case len(s.Plan) > maxPlan:
		return fmt.Errorf("the plan has %d bytes, but a ConfigMap has at most 1 MiB", len(s.Plan))
	case s.Deadline < time.Minute:
		return errors.New("--deadline: must be at least one minute")
	case s.Schedule != "":
		return checkSchedule(s.Schedule)
	}
	return nil
}

// checkSchedule validates a schedule with the parser of the API server. It also rejects
// dates that do not exist.
func checkSchedule(text string) error {
	if strings.Contains(text, "TZ") {
		return fmt.Errorf("--schedule: %q has a time zone, which CronJobs do not accept there", text)
	}
	schedule, err := cron.ParseStandard(text)
	if err == nil && schedule.Next(time.Now()).IsZero() {
		err = errors.New("no such date within five years")
	}
	if err != nil {
		return fmt.Errorf("--schedule: %q: %w; write minute, hour, day, month and day of the week in cron format: '0 3 * * *' is every night at three", text, err)
	}
	return nil
}

// IDOf returns a run's id for manifests that other tools keep and apply. Equal inputs give equal
// ids.
func IDOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

func short(s string) string { return IDOf(s)[:5] }

func (s *Spec) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: kube.Labels(s.RunID)}
}

// ConfigMap returns the ConfigMap of the plan.
func (s *Spec) ConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: s.meta("tare-" + s.RunID), Data: map[string]string{safe(s.PlanName): string(s.Plan)},
	}
}

// jobName returns the name of a node's Job or CronJob. The API server allows 52 bytes for a
// CronJob, because the names of its Jobs and pods are longer.
func jobName(runID, node string) string {
	clean := strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(safe(node)))
	if clean != node || len(clean) > 38 {
		clean = strings.Trim(clean[:min(len(clean), 32)], "-") + "-" + short(node)
	}
	return "tare-" + runID + "-" + clean
}

// Job returns the Job of a node, which runs one pod once.
func (s *Spec) Job(node string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: s.meta(jobName(s.RunID, node)),
		Spec: batchv1.JobSpec{
			Completions: new(int32(1)), Parallelism: new(int32(1)), BackoffLimit: new(int32(0)),
			ActiveDeadlineSeconds: new(int64(s.Deadline / time.Second)), TTLSecondsAfterFinished: new(int32(time.Hour / time.Second)),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: kube.Labels(s.RunID)}, Spec: s.pod(node)},
		},
	}
}

// CronJob returns the CronJob of a node. Its Jobs never overlap, because they would disturb each
// other.
func (s *Spec) CronJob(node string) *batchv1.CronJob {
	job := s.Job(node)
	job.Spec.TTLSecondsAfterFinished = nil // keep the results of the night
	return &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
		ObjectMeta: job.ObjectMeta,
		Spec: batchv1.CronJobSpec{
			Schedule: s.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			StartingDeadlineSeconds:    new(int64(10 * time.Minute / time.Second)), // do not make up for a missed schedule later in the day
			SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(3)),
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: kube.Labels(s.RunID)}, Spec: job.Spec},
		},
	}
}

func (s *Spec) pod(node string) corev1.PodSpec {
	user := int64(0)
	if !s.Needs.Privileged {
		user = 65532
	}
	p := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		TerminationGracePeriodSeconds: new(int64(60)), // for the cleanup of an interrupted plan
		HostPID:                       s.Needs.Host, HostNetwork: s.Needs.Network,
		Tolerations: s.Tolerations, PriorityClassName: s.PriorityClass,
		Affinity: kube.OnNode(node),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, RunAsNonRoot: new(!s.Needs.Privileged),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{
			{Name: "plan", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tare-" + s.RunID}}}},
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "records", VolumeSource: s.Results.volume()},
		},
	}
	if s.Needs.Privileged && !s.Needs.Host { // with cgroup v1 a container sees only its group, which is read-only
		p.Volumes = append(p.Volumes, corev1.Volume{Name: "cgroup", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: cgroupDir}}})
	}
	if s.Results.Here() { // first, so that it runs when the plan ends
		p.Containers = append(p.Containers, corev1.Container{
			Name: keeperName, Image: s.Image, Command: []string{Program, "fleet", "keep"},
			SecurityContext: restricted(), VolumeMounts: []corev1.VolumeMount{{Name: "records", MountPath: recordDir, ReadOnly: true}},
		})
	}
	p.Containers = append(p.Containers, s.runner(node))
	return p
}

// runner returns the container that runs the plan.
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
		c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}
	if s.Needs.Privileged && !s.Needs.Host {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cgroup", MountPath: cgroupDir})
	}
	if s.Needs.Host {
		c.Command, c.Env = append(c.Command, "--host"), c.Env[:2]
	}
	if s.Results.Bucket != "" {
		folder := s.Results.Bucket
		if s.Schedule != "" { // a folder per pod, so nothing is overwritten
			folder += "/$(POD)"
			c.Env = append(c.Env, corev1.EnvVar{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
		}
		c.Command = append(c.Command, "-o", folder+"/"+FileName(node)) // the last -o wins
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Results.Secret}}}}
	}
	return c
}

// restricted returns a security context for the level restricted of Pod Security.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

func (r Results) volume() corev1.VolumeSource {
	if r.Claim == "" {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.Claim}}
}

// Render writes the manifests as YAML. They lack the label of objects managed by tare, so tare
// clean does not remove them.
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

// unmanaged removes the label of tare and unset timestamps.
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
