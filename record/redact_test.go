package record

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// novel is a line with an undeclared field of each kind.
type novel struct {
	Type   Type              `json:"type"`
	Op     string            `json:"op" is:"safe"`
	Text   string            `json:"text"`
	List   []string          `json:"list"`
	Facts  map[string]string `json:"facts"`
	Known  map[string]int    `json:"known" is:"safekeys"`
	Inner  *novelInner       `json:"inner"`
	Inners []novelInner      `json:"inners"`
	Plan   json.RawMessage   `json:"plan"`
	Count  int64             `json:"count"`
}

type novelInner struct {
	Path string  `json:"path" is:"path"`
	Rate float64 `json:"rate"`
}

func TestTextsNotDeclaredSafeAreRedacted(t *testing.T) {
	t.Parallel()
	line := &novel{Op: "create", Text: "host7", List: []string{"host7", "host8"}, Facts: map[string]string{"k7": "host8"}, Known: map[string]int{"cpu": 3},
		Inner: &novelInner{"/home/me/a:12", 0.1}, Inners: []novelInner{{"/home/me", 0.2}},
		Plan: json.RawMessage(`{"ops":["run"],"budget":"10m","seed":18446744073709551615,"targets":["mine=/home/me/runc","crun"],"volumes":["nfs=server:/x","tmpfs"],"url":"http://10.0.0.7/a"}`), Count: 7}
	before := must.Get(json.Marshal(line))(t)
	r := &Redaction{}
	got := must.Get(r.Line(line))(t)
	want := &novel{Op: "create", Text: "text-1", List: []string{"text-1", "text-2"}, Facts: map[string]string{"text-3": "text-2"}, Known: map[string]int{"cpu": 3},
		Inner: &novelInner{"/path-1/path-2/path-3:12", 0.1}, Inners: []novelInner{{"/path-1/path-2", 0.2}},
		Plan: json.RawMessage(`{"budget":"10m","ops":["run"],"seed":18446744073709551615,"targets":["mine=/path-1/path-2/path-4","crun"],"url":"http://address-1","volumes":["nfs=path-5/path-6","tmpfs"]}`), Count: 7}
	if !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got)
		t.Errorf("got %s", a)
	}
	if after, _ := json.Marshal(line); string(after) != string(before) {
		t.Error("the original line was changed")
	}
	if !slices.Contains(r.Removed(), Removed{"text", 3, 5}) {
		t.Errorf("removed %+v", r.Removed())
	}
}

func TestRedactionFailsForUnreadablePlans(t *testing.T) {
	t.Parallel()
	type inner struct {
		Plan json.RawMessage `json:"plan"`
	}
	type broken struct {
		Inner inner           `json:"inner"`
		Other json.RawMessage `json:"other"`
	}
	r := &Redaction{}
	line, err := r.Line(&broken{inner{json.RawMessage("{")}, json.RawMessage("x")})
	if line != nil || err == nil || !strings.HasPrefix(err.Error(), "inner: plan: unexpected EOF") {
		t.Errorf("%v, %v", line, err)
	}
	if line, err = r.Line(&inner{json.RawMessage("{}")}); line == nil || err != nil {
		t.Errorf("the line after it: %v, %v", line, err)
	}
}

func TestRedactionKeepsAmountsOfPlans(t *testing.T) {
	t.Parallel()
	for text, stays := range map[string]bool{
		"8": true, "0.5": true, "0s": true, "400ms": true, "1h30m0s": true, "1.5s": true, "10µs": true, "4k": true, "1Gi": true, "512KiB": true, "500m": true, "25%": true, "100M/s": true, "64m": true, "4kb": true, "2g": true,
		"10.0.3.7": false, "10.10.10.10": false, "10.0.0.0/8": false, "./acme/launch": false, "3par.acme.example/team": false, "7acme": false, "1a2b3c": false, "9m5s-acme": false,
	} {
		plan := must.Get(json.Marshal(map[string]string{"node": text}))(t)
		got, err := (&Redaction{}).Line(&Header{RunID: "a", Plan: plan})
		if err != nil || strings.Contains(string(got.(*Header).Plan), text) != stays {
			t.Errorf("%s became %s, %v", text, got.(*Header).Plan, err)
		}
	}
}

func TestRedactionChangesRunIDsAndKeepsNumericCommits(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for range 2 {
		r := &Redaction{}
		for range 2 { // the same one within a redaction
			h := must.Get(r.Line(&Header{RunID: "run7"}))(t)
			ids[h.(*Header).RunID] = true
		}
		for value, want := range map[string]string{"1840": "1840", "1a2b": "label-1"} {
			check.Equal(t, value, must.Get(r.Line(&Label{Key: "commit", Value: value}))(t).(*Label).Value, want)
		}
	}
	if len(ids) != 2 || ids["run7"] {
		t.Errorf("two redactions give the run the same id: %v", ids)
	}
}

func TestListOfSafeTexts(t *testing.T) {
	t.Parallel()
	var hidden, kept int
	var walk func(b *bounds)
	walk = func(b *bounds) {
		for _, x := range b.fields {
			if x.safe {
				kept++
			} else {
				hidden++
			}
			if x.inner != nil && !x.safe {
				walk(x.inner)
			}
		}
	}
	for _, l := range standard().types {
		walk(l.tags)
	}
	// Before adding a safe text, check that it does not reveal who measured or where.
	check.Equal(t, "safe texts", kept, 87)
	if hidden < kept {
		t.Errorf("only %d fields are redacted", hidden)
	}
}

func TestLastLabelAfterTheEndCounts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/a.jsonl", "/a.jsonl.zst"} {
		path := t.TempDir() + name
		w := must.Get(Create(path))(t)
		for _, line := range few() {
			must.OK(t, w.Write(line))
			check.Error(t, standard().AddLabels(path, []Label{{Key: "commit", Value: "0"}}), "a run still writes this record; label it when")
		}
		// Hold a copy of the descriptor, as a process does that is being started.
		held := must.Get(syscall.Dup(int(w.file.Fd())))(t)
		must.OK(t, w.Close())
		defer syscall.Close(held)
		for _, value := range []string{"1", "2", ""} {
			must.OK(t, standard().AddLabels(path, []Label{{Key: "commit", Value: value}, {Key: "node", Value: "a"}}))
			got, err := Load(path)
			if err != nil || got.ProblemCount != 0 || got.End == nil {
				t.Fatalf("%v, problems %v", err, got.Problems)
			}
			want := []Label{{TypeLabel, "commit", value}, {TypeLabel, "node", "a"}}
			if value == "" {
				want = want[1:]
			}
			check.Equal(t, "labels", got.Labelled(), want)
		}
	}
}

func TestJoinedRecordsAreReadSeparately(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, _ := written(t, few())
	cut := strings.TrimSuffix(whole, "\n")
	for name, text := range map[string]string{"whole": whole, "cut": cut[:len(cut)-9], "bare": cut, "late": strings.Replace(whole, `{"type":"end"`, `{"type":"later","x":1}`+"\n"+`{"type":"end"`, 1),
		"long": strings.Replace(whole, `{"type":"end"`, strings.Repeat("x", MaxLine+1)+"\n"+`{"type":"end"`, 1)} {
		writeFile(t, dir+"/"+name, text)
	}
	for _, out := range []string{"/j.jsonl", "/j.jsonl.zst"} {
		w := must.Get(Create(dir + out))(t)
		for _, name := range []string{"whole", "cut", "bare", "late", "long"} { // bare lacks only its last newline
			if broken, err := w.Join(dir + "/" + name); err != nil || broken != (name == "cut" || name == "long") {
				t.Fatalf("%s: broken %v, %v", name, broken, err)
			}
		}
		must.OK(t, w.Close())
		all, err := standard().LoadAll(dir + out)
		if err != nil || len(all) != 5 {
			t.Fatalf("%d records, %v", len(all), err)
		}
		for i, ended := range []bool{true, false, true, true, true} {
			if (all[i].End != nil) != ended || all[i].ProblemCount != 0 || len(all[i].Batches) != 1 || all[i].Truncated {
				t.Errorf("record %d: %+v", i, all[i])
			}
		}
		if one, err := Load(dir + out); err != nil || one.ProblemCount != 1 || !strings.Contains(one.Problems[0].Reason, "a second header") {
			t.Errorf("%v, %+v", err, one)
		}
		check.Error(t, standard().AddLabels(dir+out, []Label{{Key: "a", Value: "b"}}), "label each before")
	}
	check.Error(t, standard().AddLabels(dir+"/cut", nil), "its last line is incomplete")
	writeFile(t, dir+"/newer", whole+strings.Replace(whole, `"schema":1`, `"schema":99`, 1))
	_, err := standard().LoadAll(dir + "/newer")
	check.Error(t, err, "newer schema")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
