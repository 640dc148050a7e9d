package published

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Limits of a publication.
const (
	maxTables  = 200
	maxRows    = 100
	maxColumns = 32
	maxFigure  = 32 // characters
)

// Validate returns all errors in the publication.
func (r *Report) Validate() error {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Version < 1 || r.Version > Version {
		complain("unsupported version %d (supported: %d)", r.Version, Version)
	}
	if r.Name == "" || r.Title == "" {
		complain("name or title is missing")
	}
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil && r.Date != "" {
		complain("invalid date %q: write it as 2006-01-02", r.Date)
	}
	if unit := Units[r.Unit]; r.Experiment == "" && unit.Base != "ns" {
		complain("unit %q is not a unit of time: write ns, us, ms or s", r.Unit)
	}
	if len(r.Tables) > maxTables {
		complain("too many tables: %d (at most %d)", len(r.Tables), maxTables)
		return errors.Join(errs...)
	}
	unique(complain, "machine", r.Machines, func(m Machine) string { return m.ID })
	unique(complain, "engine", r.Engines, func(e Engine) string { return e.ID })
	unique(complain, "column", r.Columns, func(c Column) string { return c.ID })
	unique(complain, "table", r.Tables, func(t Table) string { return t.ID })
	r.columns(complain)
	for i := range r.Tables {
		if err := r.table(&r.Tables[i]); err != nil {
			complain("table %q: %w", r.Tables[i].ID, err)
		}
	}
	r.claims(complain)
	return errors.Join(errs...)
}

func (r *Report) columns(complain func(string, ...any)) {
	for _, c := range r.Columns {
		if r.Engine(c.Engine).ID == "" && (c.Engine != "" || r.Experiment == "") {
			complain("column %q: unknown engine %q", c.ID, c.Engine)
		}
		for _, pattern := range c.Targets {
			if _, err := path.Match(pattern, ""); err != nil {
				complain("column %q: targets: invalid pattern %q: %v", c.ID, pattern, err)
			}
		}
	}
}

func (r *Report) claims(complain func(string, ...any)) {
	for _, c := range r.Claims {
		if c.Says == "" || len(c.But) == 0 || slices.ContainsFunc(c.But, func(s Shown) bool { return s.What == "" || s.Gives == "" }) {
			complain("claim %q: statement or contradicting figures are missing", c.Says)
		}
	}
}

func unique[T any](complain func(string, ...any), what string, all []T, id func(T) string) {
	var seen []string
	for _, one := range all {
		switch name := id(one); {
		case name == "":
			complain("a %s has no id", what)
		case slices.Contains(seen, name):
			complain("duplicate %s %q", what, name)
		default:
			seen = append(seen, name)
		}
	}
}

func (r *Report) table(t *Table) error {
	switch {
	case r.Machine(t.Machine).ID == "":
		return fmt.Errorf("machine %q is not among the machines", t.Machine)
	case r.Experiment == "" && (t.Lanes < 1 || t.Lanes > record.MaxLanes):
		return fmt.Errorf("lanes %d: from 1 to %d are possible", t.Lanes, record.MaxLanes)
	case len(t.Columns) == 0 || len(t.Columns) > maxColumns:
		return fmt.Errorf("%d columns: a table has 1 to %d", len(t.Columns), maxColumns)
	case len(t.Rows) > maxRows:
		return fmt.Errorf("too many rows: %d (at most %d)", len(t.Rows), maxRows)
	}
	for _, id := range t.Columns {
		if r.Column(id).ID == "" {
			return fmt.Errorf("column %q is not among the columns", id)
		}
	}
	for _, id := range t.Versus {
		if !slices.Contains(t.Columns, id) || id == t.Subject || !slices.Contains(t.Columns, t.Subject) {
			return fmt.Errorf("it compares %q with %q, one of which is not among its columns", t.Subject, id)
		}
	}
	for _, row := range t.Rows {
		if err := r.row(t, &row); err != nil {
			return fmt.Errorf("row %q: %w", row.Label, err)
		}
	}
	return nil
}

func (r *Report) row(t *Table, row *Row) error {
	if _, err := setting.ParseOp(row.Op); err != nil && r.Experiment == "" {
		return err
	}
	if len(row.Values) != len(t.Columns) {
		return fmt.Errorf("%d values in %d columns", len(row.Values), len(t.Columns))
	}
	if len(row.Versus) != 0 && len(row.Versus) != len(t.Versus) {
		return fmt.Errorf("%d differences from %d columns", len(row.Versus), len(t.Versus))
	}
	for i, v := range row.Values {
		column := r.Column(t.Columns[i])
		if unit := t.Akin(&column, row).Unit; r.Experiment != "" && Units[unit].Factor == 0 {
			return fmt.Errorf("unknown unit %q", unit)
		}
		if v == "" {
			continue
		}
		if len(v) > maxFigure {
			return fmt.Errorf("a figure of %d characters", len(v))
		}
		if n, err := strconv.ParseFloat(string(v), 64); err != nil || n < 0 || math.IsInf(n, 0) {
			return fmt.Errorf("%s is not a time or another amount", v)
		}
	}
	return nil
}
