package overhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// handler returns the runtime's name as a Kubernetes handler, which is a DNS label.
func handler(target string) string {
	label := strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(target[strings.LastIndex(target, "/")+1:], "-"))
	if label = strings.Trim(label[:min(len(label), 63)], "-"); label == "" {
		return "runtime"
	}
	return label
}

// yamlOf returns the RuntimeClass with the overhead. It keeps the handler and scheduling of
// the cluster's own RuntimeClass. The handler is immutable, and without scheduling, pods
// could go to nodes that cannot run them. JSON is valid YAML; redacted or unprintable
// text is omitted.
func yamlOf(c *RuntimeClass, is *record.Kubernetes) string {
	name, serves, scheduling := c.Handler, c.Handler, ""
	if is != nil && is.RuntimeClass != "" {
		name, serves = is.RuntimeClass, is.Handler
		if text := strings.TrimSpace(is.Scheduling); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) && term.Clean(text) == text {
			scheduling = "scheduling: " + text + "\n"
		}
	}
	var fixed strings.Builder
	if c.Memory > 0 {
		fmt.Fprintf(&fixed, "    memory: \"%dMi\"\n", c.Memory>>20)
	}
	if c.CPU > 0 {
		fmt.Fprintf(&fixed, "    cpu: \"%dm\"\n", c.CPU)
	}
	return fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: %q\nhandler: %q\noverhead:\n  podFixed:\n%s%s", name, serves, fixed.String(), scheduling)
}

// writeClasses writes all RuntimeClasses to apply, with their rules as comments.
func writeClasses(w io.Writer, j *Judgement) error {
	why := "no RuntimeClass is recommended: no phase with sandboxes was read whole"
	var all []string
	for c := range ledger.Each(j.Classes) {
		if c.YAML == "" {
			why = c.Not
			continue
		}
		var out strings.Builder
		for _, line := range append([]string{"of " + c.Target + ", by tare overhead"}, c.Rule...) {
			fmt.Fprintf(&out, "# %s\n", term.Clean(line))
		}
		all = append(all, out.String()+c.YAML)
	}
	if all == nil {
		return errors.New(why)
	}
	_, err := io.WriteString(w, strings.Join(all, "---\n"))
	return err
}
