package report

import "github.com/tare-bench/tare/internal/term"

// matrix is a table whose first columns stand in every part of it, and whose
// others are parted where all are too many for the page.
type matrix struct {
	lead    []term.Column
	columns []term.Column
	rows    []matrixRow
}

type matrixRow struct {
	lead  []cell
	cells []cell
}

func (m *matrix) column(title string, cells []cell) {
	m.columns = append(m.columns, term.Column{Title: title, Right: true})
	for i := range m.rows {
		m.rows[i].cells = append(m.rows[i].cells, cells[i])
	}
}

// text is a column whose texts begin below each other.
func (m *matrix) text(title string, cells []cell) {
	m.column(title, cells)
	m.columns[len(m.columns)-1].Right = false
}

func (m *matrix) spread() *spread {
	s := &spread{pivot: -1, build: m.of}
	for i := range m.columns {
		s.order = append(s.order, i)
	}
	return s
}

func (m *matrix) of(columns []int) *grid {
	g := &grid{columns: append([]term.Column(nil), m.lead...)}
	for _, i := range columns {
		g.columns = append(g.columns, m.columns[i])
	}
	for _, row := range m.rows {
		cells := append([]cell(nil), row.lead...)
		for _, i := range columns {
			cells = append(cells, row.cells[i])
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// onlyIf adds a column unless it shows nothing of any row.
func (m *matrix) onlyIf(title string, cells []cell) {
	for _, c := range cells {
		if c.head != dot && c.head != "" {
			m.column(title, cells)
			return
		}
	}
}

// each makes the cells of a column, one a row.
func each[T any](rows []T, show func(*T) cell) []cell {
	out := make([]cell, len(rows))
	for i := range rows {
		out[i] = show(&rows[i])
	}
	return out
}
