package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// about describes the run and its machine, with OpenTelemetry's attribute names where they
// exist.
func about(rec *record.Record) figure.Labels {
	h, env := headOf(rec), &rec.Header.Environment
	return figure.Of("service.name", "tare", "service.version", h.Version, "tare.experiment", h.Experiment, "tare.run", h.RunID, "tare.status", h.Status,
		"host.arch", goarch(env.Arch), "host.cpu.model.name", env.CPUModel, "os.type", osType(env), "os.description", env.OS, "os.version", env.Kernel)
}

// osType returns "" if the machine is unknown, as it is for an imported record.
func osType(env *record.Environment) string {
	if env.Kernel == "" {
		return ""
	}
	return "linux"
}

// goarch returns the architecture's name in Go and OpenTelemetry.
func goarch(uname string) string {
	return cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[uname], uname)
}

// environment returns the whole environment under the record's own keys. Nested keys are
// joined with dots.
func environment(env *record.Environment) (figure.Labels, error) {
	text, err := json.Marshal(env)
	if err != nil {
		return nil, fmt.Errorf("write the environment: %w", err)
	}
	var values map[string]any
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber() // keep numbers exact
	if err := read.Decode(&values); err != nil {
		return nil, fmt.Errorf("write the environment: %w", err)
	}
	return flat("environment", values), nil
}

func flat(key string, value any) figure.Labels {
	switch v := value.(type) {
	case map[string]any:
		var out figure.Labels
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, flat(key+"."+k, v[k])...)
		}
		return out
	case []any:
		return figure.Of(key, strings.Trim(fmt.Sprint(v), "[]"))
	default:
		return figure.Of(key, fmt.Sprint(v))
	}
}
