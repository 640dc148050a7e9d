package page

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

func TestWhatDiffersBetweenKatasIsNamedAndNothingElse(t *testing.T) {
	t.Parallel()
	kata := func(name string, config map[string]string) record.Target {
		config["kata config"], config["kata version"], config["handler"] = "/etc/"+name+".toml", "4.1", name
		return record.Target{Name: "cri+containerd/" + name, Config: config}
	}
	runc := record.Target{Name: "cri+containerd/runc", Config: map[string]string{"handler": "runc", "network": "none"}}
	plain, template := kata("kata", map[string]string{"enable_template": "false"}), kata("kata-template", map[string]string{"enable_template": "true", "default_memory": "2048\x1b[31m"})
	s := Configurations([]record.Target{runc, plain, template})
	if s == nil {
		t.Fatal("nothing is named")
	}
	var got [][]string
	for _, row := range s.Table.Rows {
		got = append(got, []string{row[0].Head, row[1].Head, row[2].Head})
	}
	want := [][]string{{"default_memory", None, term.Clean("2048\x1b[31m")}, {"enable_template", "false", "true"}, {"kata config", "/etc/kata.toml", "/etc/kata-template.toml"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
	for claim, targets := range map[string][]record.Target{"no Kata": {runc}, "one Kata": {runc, plain}, "two that are alike": {plain, plain}} {
		if s := Configurations(targets); s != nil {
			t.Errorf("%s: %+v", claim, s)
		}
	}
}
