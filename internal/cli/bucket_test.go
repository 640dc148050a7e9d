package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/teststore"
)

// inStore uploads files to a bucket and changes to an empty folder.
func inStore(t *testing.T, files map[string]string) *teststore.Store {
	t.Helper()
	s := teststore.Start(t)
	for key, path := range files {
		if _, err := s.FPutObject(t.Context(), teststore.Bucket, key, path, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	place(t)
	return s
}

func TestRecordsAreReadFromABucketLikeFromAFolder(t *testing.T) {
	dir := t.TempDir()
	docker, podman := stored(t, dir, "docker/runc", false), stored(t, dir, "podman/runc", false)
	garbled := filepath.Join(dir, "garbled")
	must.Write(t, garbled, "no record\n")
	nights := t.TempDir()
	commits(t, nights, 24)
	files := map[string]string{"a/run.jsonl": docker, "b/run.jsonl": podman, "bad/garbled.jsonl": garbled, "bad/run.jsonl": docker}
	entries, _ := filepath.Glob(filepath.Join(nights, "*.jsonl"))
	for _, path := range entries {
		files["nightly/"+filepath.Base(path)] = path
	}
	s := inStore(t, files)
	commands(t, "bucket", func(line, output string) {
		if strings.Contains(output, s.Secret) || strings.Contains(output, "hidden") {
			t.Errorf("tare %s prints a secret\n%s", line, output)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); left != nil {
			t.Errorf("tare %s leaves files behind: %v", line, left)
		}
	})
	for _, key := range []string{"document/report.html", "document/figures.json"} {
		if _, err := s.StatObject(t.Context(), teststore.Bucket, key, minio.StatObjectOptions{}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestRecordIsUploadedOnceComplete(t *testing.T) {
	need.Root(t)
	s := inStore(t, nil)
	const address = "s3://tare/nightly/run.jsonl.zst"
	line := words("lifecycle host --rounds 2 --warmup 0 --ops run -q -o " + address)
	if out, stderr := ends(t, ExitDone, "to "+address, line...); strings.Contains(out+stderr, s.Secret) {
		t.Errorf("it prints the secret:\n%s\n%s", out, stderr)
	}
	ends(t, ExitDone, "host", "report", address)
	rounds := s.Requests.Load()
	if refuses(t, line, "already exists"); s.Requests.Load() > rounds+1 {
		t.Errorf("the second run sent %d requests", s.Requests.Load()-rounds)
	}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // the bucket disappears during the upload
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPut
	})
	_, stderr := ends(t, ExitUsage, "AWS_SECRET_ACCESS_KEY", append(line[:len(line)-1], "s3://tare/nightly/other.jsonl")...)
	_, kept, _ := strings.Cut(stderr, "the files are kept in ")
	kept, _, _ = strings.Cut(kept, ";")
	ends(t, ExitDone, "host", "report", filepath.Join(kept, "other.jsonl"))
}

func TestReportFileIsReplacedAtomically(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tare.prom")
	run := stored(t, t.TempDir(), "docker/runc", true)
	if out, _ := ends(t, ExitFailed, "", "report", run, "--format", "openmetrics", "-o", path); out != "" {
		t.Errorf("it is also printed:\n%s", out)
	}
	first := must.Get(os.Open(path))(t)
	defer first.Close()
	info, _ := first.Stat()
	if text := must.Read(t, path); info.Mode() != 0o644 || !strings.Contains(text, "tare_run_failed{") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("%v\n%s", info.Mode(), text)
	}
	ends(t, ExitFailed, "", "report", run, "--format", "csv", "-o", path, "--force")
	text := make([]byte, info.Size())
	if n, _ := first.ReadAt(text, 0); int64(n) != info.Size() || !strings.HasSuffix(string(text), "# EOF\n") {
		t.Error("an open reader no longer reads the old file")
	}
	for _, args := range [][]string{{"none.jsonl", "-o", path}, {run, "-o", filepath.Join(dir, "none", "x.prom")}} {
		ends(t, ExitUsage, "", append([]string{"report", "--format", "openmetrics"}, args...)...)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || !strings.HasPrefix(must.Read(t, path), "run_id,") {
		t.Errorf("%v", left)
	}
}

func TestCronJobIsValid(t *testing.T) {
	t.Parallel()
	documents := strings.Split(must.Read(t, "../../docs/kubernetes/cronjob.yaml"), "\n---\n")
	var config corev1.ConfigMap
	var cron batchv1.CronJob
	for i, into := range []any{&config, &cron} {
		must.OK(t, yaml.UnmarshalStrict([]byte(documents[i]), into))
	}
	for name, text := range config.Data {
		if _, err := plan.Parse(name, []byte(text), all.Instruments); err != nil {
			t.Error(err)
		}
	}
	if late := cron.Spec.StartingDeadlineSeconds; late == nil || *late != 600 {
		t.Error("a missed night run is started during the day")
	}
	c := cron.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	if err := understood(strings.Join(c.Command[1:], " ")); err != nil || c.Command[1] != "run" {
		t.Errorf("%v: %v", c.Command, err)
	}
}
