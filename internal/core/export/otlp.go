package export

import (
	"io"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
)

// Messages of OTLP metrics in JSON encoding. docs/formats.md links their definitions.
type (
	otlpMetrics struct {
		Resources []otlpResource `json:"resourceMetrics"`
	}
	otlpResource struct {
		Resource otlpAttributes `json:"resource"`
		Scopes   []otlpScope    `json:"scopeMetrics"`
	}
	otlpAttributes struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String string `json:"stringValue"`
	}
	otlpScope struct {
		Scope   otlpName     `json:"scope"`
		Metrics []otlpMetric `json:"metrics"`
	}
	otlpName struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpMetric struct {
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Unit        string    `json:"unit"`
		Gauge       otlpGauge `json:"gauge"`
	}
	otlpGauge struct {
		Points []otlpPoint `json:"dataPoints"`
	}
	otlpPoint struct {
		Attributes []otlpAttribute `json:"attributes"`
		Start      string          `json:"startTimeUnixNano,omitempty"`
		Time       string          `json:"timeUnixNano,omitempty"` // omitted if unknown
		Value      float64         `json:"asDouble"`
	}
)

// OTLP writes OpenTelemetry metrics as JSON, with one resource per run. The resource attributes
// are the run and its environment.
func OTLP(w io.Writer, all []Document) error {
	out := otlpMetrics{Resources: []otlpResource{}}
	for i, figures := range naming(all) {
		rec := all[i].Record
		env, err := environment(&rec.Header.Environment)
		if err != nil {
			return err
		}
		scope := otlpScope{Scope: otlpName{"github.com/tare-bench/tare", rec.Header.Version}, Metrics: []otlpMetric{}}
		start, end := span(headOf(rec))
		for _, g := range gauges(figures) {
			m := otlpMetric{Name: "tare." + g.experiment + "." + g.quantity, Description: g.help(), Unit: g.ucum}
			if g.part != "" {
				m.Name += "." + g.part
			}
			for _, p := range g.points {
				m.Gauge.Points = append(m.Gauge.Points, otlpPoint{otlpAttributesOf(p.of.labels), start, end, p.value})
			}
			scope.Metrics = append(scope.Metrics, m)
		}
		out.Resources = append(out.Resources, otlpResource{otlpAttributes{otlpAttributesOf(append(about(rec), env...))}, []otlpScope{scope}})
	}
	return Value(w, out)
}

// span returns the start and the end of a run, or "" if they are unknown.
func span(h head) (start, end string) {
	if h.Started.IsZero() || h.Started.UnixNano() < 0 {
		return "", ""
	}
	return strconv.FormatInt(h.Started.UnixNano(), 10), strconv.FormatInt(h.Started.UnixNano()+h.Elapsed, 10)
}

func otlpAttributesOf(labels figure.Labels) []otlpAttribute {
	out := make([]otlpAttribute, len(labels))
	for i, l := range labels {
		out[i] = otlpAttribute{l.Key, otlpValue{l.Value}}
	}
	return out
}
