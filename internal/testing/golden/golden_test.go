package golden

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestEveryCaseIsCompared(t *testing.T) {
	inputs := map[string]string{}
	Cases(t, "testdata/cases.txt", func(t *testing.T, input string) string {
		inputs[t.Name()[strings.LastIndex(t.Name(), "/")+1:]] = input
		return strings.ToUpper(input)
	})
	want := map[string]string{"one_line": "a b", "several,_one_of_them_empty": "// a\n\nb", "none": "", "quoted": "a\tb"}
	for claim, input := range want {
		check.Equal(t, fmt.Sprintf("%s: the input", claim), inputs[claim], input)
	}
	check.That(t, len(inputs) == len(want), "cases are %q", inputs)
}

func TestUpdateWritesResults(t *testing.T) {
	dir := t.TempDir()
	must.Write(t, dir+"/cases", "// twice\nx\n⇒ old\n\n// empty\n⇒ old\n")
	*update = true
	t.Cleanup(func() { *update = false })
	Cases(t, dir+"/cases", func(_ *testing.T, input string) string { return input + "\n" + input })
	Same(t, dir+"/text", "whole\n")
	cases, text := must.Read(t, dir+"/cases"), must.Read(t, dir+"/text")
	check.That(t, cases == "// twice\nx\n⇒ x\n⇒ x\n\n// empty\n⇒ \n⇒ \n" && text == "whole\n", "%q and %q", cases, text)
}
