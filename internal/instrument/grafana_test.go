package instrument_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

const dashboardFile = "../../docs/grafana/tare.json"

// opened returns the dashboard in Grafana's own types, which reject unknown fields.
func opened(text []byte) (*dashboard.Dashboard, error) {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(grafana.VariantConfig())
	d := &dashboard.Dashboard{}
	return d, errors.Join(d.UnmarshalJSONStrict(text), d.Validate())
}

// exported returns the series of all stored records by metric name.
func exported(t *testing.T) map[string][]labels.Labels {
	t.Helper()
	out := map[string][]labels.Labels{}
	for _, name := range names(t) {
		for series := range seriesOf(t, report(t, load(t, name), "openmetrics", page.Options{})) {
			out[series.Get("__name__")] = append(out[series.Get("__name__")], series)
		}
	}
	return out
}

// given replaces each dashboard variable with a value.
var given = strings.NewReplacer("$plan", ".*", "$target", ".*", "$op", ".*", "$sandboxes", "1")

// selected matches the selectors of a query.
func selected(t *testing.T, query string) (out []*parser.VectorSelector) {
	t.Helper()
	expr, err := parser.ParseExpr(given.Replace(query))
	must.That(t, err == nil, "%s: %v", query, err)
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			out = append(out, v)
		}
		return nil
	})
	return out
}

var (
	legend   = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	bound    = regexp.MustCompile("_(lower|upper)_")                                       // some stored records have too few rounds for bounds
	notOfAll = map[string]bool{"plan": true, "measure": true, "node": true, "cache": true} // labels added by /metrics of tare serve, and the label of cold runs
)

func TestDashboardMatchesExportedMetrics(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(dashboardFile))(t)
	d := must.Get(opened(text))(t)
	_, err := opened([]byte(strings.Replace(string(text), `"lineWidth"`, `"lineWidht"`, 1)))
	check.That(t, err != nil, "a field unknown to Grafana was accepted")
	series, queries := exported(t), 0
	for _, p := range d.Panels {
		if p.Panel == nil {
			continue
		}
		for _, target := range p.Panel.Targets {
			query, ok := target.(*grafana.Dataquery)
			if !ok {
				t.Fatalf("%s: query of type %T", *p.Panel.Title, target)
			}
			queries++
			has := map[string]bool{}
			for _, v := range selected(t, query.Expr) {
				found := 0
				for _, one := range slices.Concat(series[v.Name], series[bound.ReplaceAllString(v.Name, "_")]) {
					if matches(v, one) {
						found++
						one.Range(func(l labels.Label) { has[l.Name] = true })
					}
				}
				check.That(t, found != 0, "%s: no stored record has %s", *p.Panel.Title, v)
			}
			for _, name := range legend.FindAllStringSubmatch(*query.LegendFormat, -1) {
				if !has[name[1]] && !notOfAll[name[1]] {
					t.Errorf("%s: series without label %s", *p.Panel.Title, name[1])
				}
			}
		}
	}
	check.That(t, queries >= 20, "only %d queries", queries)
	for _, v := range d.Templating.List {
		if v.Type != dashboard.VariableTypeQuery {
			continue
		}
		of := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`).FindStringSubmatch(fmt.Sprint(v.Query.Map["query"]))
		must.That(t, of != nil, "variable %s: %v", v.Name, v.Query)
		found := notOfAll[of[2]]
		for _, selector := range selected(t, of[1]) {
			for _, all := range series {
				for _, one := range all {
					found = found || matches(selector, one) && one.Has(of[2])
				}
			}
		}
		check.That(t, found, "variable %s: no such label", v.Name)
	}
}

func matches(v *parser.VectorSelector, series labels.Labels) bool {
	for _, m := range v.LabelMatchers {
		if m.Name != "__name__" && !m.Matches(series.Get(m.Name)) {
			return false
		}
	}
	return true
}
