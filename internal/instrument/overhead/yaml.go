package overhead

import (
	"fmt"
	"strings"
)

// handler is the runtime's name as Kubernetes takes it: a DNS label.
func handler(target string) string {
	name := target[strings.LastIndex(target, "/")+1:]
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	if label = strings.Trim(label[:min(len(label), 63)], "-"); label == "" {
		return "runtime"
	}
	return label
}

func yamlOf(c *RuntimeClass) string {
	var fixed strings.Builder
	if c.Memory > 0 {
		fmt.Fprintf(&fixed, "    memory: \"%dMi\"\n", c.Memory>>20)
	}
	if c.CPU > 0 {
		fmt.Fprintf(&fixed, "    cpu: \"%dm\"\n", c.CPU)
	}
	return fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: %q\nhandler: %q\noverhead:\n  podFixed:\n%s", c.Handler, c.Handler, fixed.String())
}
