package export

import (
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Parquet writes the rows of figures with optional columns, sorted by name and compressed with
// zstd.
func Parquet(w io.Writer, all []Document) error {
	t, group, at := tableOf(all), parquet.Group{}, map[string]int{}
	for i, c := range t.columns {
		group[c.name], at[c.name] = parquet.Compressed(parquet.Optional(c.kind()), &parquet.Zstd), i
	}
	schema := parquet.NewSchema("figures", group)
	out := parquet.NewWriter(w, schema)
	for _, r := range t.rows {
		row := make(parquet.Row, 0, len(t.columns))
		for i, name := range schema.Columns() {
			cell, defined := r.cells[at[name[0]]], 1
			switch v := cell.(type) {
			case nil:
				defined = 0
			case time.Time:
				cell = v.UnixMicro()
			}
			row = append(row, parquet.ValueOf(cell).Level(0, defined, i))
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return fmt.Errorf("write the report as Parquet: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write the report as Parquet: %w", err)
	}
	return nil
}
