package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

func TestLinePrefixesBecomeLabels(t *testing.T) {
	t.Parallel()
	stern := strings.Repeat("fio-a fio one\nfio-b fio two\n", 5)
	for name, c := range map[string]struct {
		text string
		want string // label: lines; …
	}{
		"no prefix":                     {"a\n  b\r\n\n> c", ": a b c"},
		"kubectl --prefix":              {"[pod/a-1/x] one\n[pod/b-1/x] two\n[pod/a-1/x] three", "a-1/x: one three; b-1/x: two"},
		"kubectl --prefix --timestamps": {"[pod/a-1/x] 2022-07-30T21:56:30.123456789Z one\n[pod/a-1/x] 2022-07-30T21:56:30.1Z ", "a-1/x: one"},
		"kubectl --timestamps":          {"2022-07-30T21:56:30.1Z one\n2022-07-30T21:56:30.1+02:00 two", ": one two"},
		"stern":                         {stern, "fio-a/fio: one one one one one; fio-b/fio: two two two two two"},
		"two words without a pod":       {strings.Repeat("clat percentiles (usec):\n", 1), ": clat percentiles (usec):"},
		"CRI log":                       {"2022-07-30T21:56:30.1Z stdout P on\n2022-07-30T21:56:30.1Z stdout F e\n2022-07-30T21:56:30.1Z stderr F two", ": one two"},
		"docker json-file":              {`{"log":"on","stream":"stdout","time":"t"}` + "\n" + `{"log":"e\n","stream":"stdout","time":"t"}` + "\n" + `{"log":"\u001b[31mtwo\n"}`, ": one two"},
		"docker compose":                {"web-1  | one\ndb_1   | two\nweb-1  | three", "web-1: one three; db_1: two"},
		"gh run view --log":             {"job (a)\tUNKNOWN STEP\t\ufeff2022-07-30T21:56:30.1234567Z one\njob (b)\tRun fio\t2022-07-30T21:56:30.1234567Z two", "job-a: one; job-b-Run-fio: two"},
		"GitHub and GitLab job logs":    {"2022-07-30T21:56:30.1234567Z one\n2024-05-22T12:43:46.962646Z 00O two\n2024-05-22T12:43:46.962646Z 00O+three", ": one two three"},
		"grep in several files":         {"runc/a.log:3:one\nkata/a.log:two", "runc/a.log: one; kata/a.log: two"},
		"Jenkins":                       {"[2022-07-30T21:56:30.123Z] one", ": one"},
		"journalctl":                    {"Jul 30 21:56:30 n1 fio[12]: one\nJul  1 21:56:30 n2 fio[12]: two", "n1-fio: one; n2-fio: two"},
		"HTML":                          {"<pre>one<br>two&#10;three</pre>\n&lt;four&gt;", ": one two three <four>"},
		"overwritten progress lines":    {"2022-07-30T21:56:30.1Z 10 %\r20 %\rone", ": one"},
		"JSON document is kept":         {"{\"a\":\"<b> &lt;\",\n \"c\":1}", ": {\"a\":\"<b> &lt;\", \"c\":1}"},
		"fio --client":                  {"<198.18.0.7> one\n<node> two", ": one two"},
	} {
		var got []string
		for _, s := range Split(c.text) {
			words := []string{s.Label + ":"}
			for i, l := range s.Lines {
				words = append(words, l.Text)
				check.Equal(t, name+": line in the text", s.From(i, i+1), l.Text+"\n")
			}
			got = append(got, strings.Join(words, " "))
		}
		check.Equal(t, name, strings.Join(got, "; "), c.want)
	}
}

func TestObjectsAreFoundInAnyText(t *testing.T) {
	t.Parallel()
	s := Split("prose\n{\"a\":\n {\"b\": 1}}\n{ no\n{\"c\":2}\n\n{\"d\":\n")[0]
	var got []string
	for _, o := range s.Objects() {
		got = append(got, string(o.JSON))
		check.Equal(t, "invalid JSON", o.Err != nil, !json.Valid(o.JSON))
		check.That(t, o.Has("b") == (len(got) == 1), "%s", o.JSON)
	}
	check.Equal(t, "objects", strings.ReplaceAll(strings.Join(got, "|"), "\n", " "), "{\"a\": {\"b\": 1}}|{ |{\"c\":2}|{\"d\": ")
	check.That(t, s.Objects()[0].Line == 2 && s.Objects()[3].Line == 7, "%+v", s.Objects())
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range maxStreams + 50 {
		text.WriteString("[pod/p-" + strings.Repeat("x", i) + "/c] line\n")
	}
	all := Split(text.String())
	check.That(t, len(all) == maxStreams && len(all[maxStreams-1].Lines) == 51 && len(all[900].Label) <= maxLabel, "%d streams", len(all))
}

func FuzzSplit(f *testing.F) {
	f.Add("[pod/a-1/x] {\"a\":\n[pod/a-1/x] 1}\n{\"log\":\"x\"}\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Split(text) {
			for i, l := range s.Lines {
				check.That(t, l.Text != "" && s.From(i, i+1) == l.Text+"\n", "line %d: %q", i, l.Text)
			}
			s.Objects()
		}
	})
}
