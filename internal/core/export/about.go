package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// about says which run it was and on what, in the words of OpenTelemetry's conventions
// where they have one.
func about(rec *record.Record) figure.Labels {
	h, env := headOf(rec), &rec.Header.Environment
	return figure.Of("service.name", "tare", "service.version", h.Version, "tare.experiment", h.Experiment, "tare.run", h.RunID, "tare.status", h.Status,
		"host.arch", goarch(env.Arch), "host.cpu.model.name", env.CPUModel, "os.type", osType(env), "os.description", env.OS, "os.version", env.Kernel)
}

// osType is "" of a machine of which nothing is known, such as one that an import is of.
func osType(env *record.Environment) string {
	if env.Kernel == "" {
		return ""
	}
	return "linux"
}

// goarch is the name of an architecture in Go and in OpenTelemetry.
func goarch(uname string) string {
	if name, ok := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[uname]; ok {
		return name
	}
	return uname
}

// environment is all of it by the record's own keys, those within others after a dot.
func environment(env *record.Environment) (figure.Labels, error) {
	text, err := json.Marshal(env)
	if err != nil {
		return nil, fmt.Errorf("write the environment: %w", err)
	}
	var values map[string]any
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber() // as it stands, not as a float
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
