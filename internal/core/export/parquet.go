package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Parquet writes the rows of figures in columns that may be null, compressed by zstd:
// the plain encoding and pages of version 1, which every reader has.
//
// It is written here since the libraries for it, which can do far more, are megabytes
// that every start of tare would have to load; tests read it back with one.
func Parquet(w io.Writer, all []Document) error {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("write the report as Parquet: %w", err)
	}
	t, out := tableOf(all), bytes.NewBufferString("PAR1")
	var groups []any
	for rows := range slices.Chunk(t.rows, 1<<16) {
		var chunks []any
		size := 0
		for i, c := range t.columns {
			page := parquetPage(rows, i)
			packed := pack.EncodeAll(page, nil)
			header := compact(fields{1: int32(0), 2: int32(len(page)), 3: int32(len(packed)),
				5: fields{1: int32(len(rows)), 2: plain, 3: levelRuns, 4: levelRuns}})
			offset := int64(out.Len())
			out.Write(header)
			out.Write(packed)
			size += len(header) + len(page)
			chunks = append(chunks, fields{2: offset, 3: fields{1: c.stored(), 2: []any{plain, levelRuns}, 3: []any{c.name}, 4: codecZstd, 5: int64(len(rows)),
				6: int64(len(header) + len(page)), 7: int64(out.Len()) - offset, 9: offset}})
		}
		groups = append(groups, fields{1: chunks, 2: int64(size), 3: int64(len(rows))})
	}
	schema := []any{fields{4: "figures", 5: int32(len(t.columns))}}
	for _, c := range t.columns {
		is := fields{1: c.stored(), 3: optional, 4: c.name}
		switch c.kind {
		case kindTime:
			is[6], is[10] = int32(10), fields{8: fields{1: true, 2: fields{2: fields{}}}} // µs, of UTC
		case kindText:
			is[6], is[10] = int32(0), fields{1: fields{}} // UTF-8
		}
		schema = append(schema, is)
	}
	foot := compact(fields{1: int32(1), 2: schema, 3: int64(len(t.rows)), 4: groups, 6: "tare"})
	out.Write(binary.LittleEndian.AppendUint32(foot, uint32(len(foot))))
	out.WriteString("PAR1")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the report as Parquet: %w", err)
	}
	return nil
}

// Numbers of parquet.thrift.
const (
	kindWhole, kindReal, kindText = int32(2), int32(5), int32(6)
	kindTime                      = int32(-1) // a whole number to Parquet, and what it means besides
	optional                      = int32(1)
	plain, levelRuns              = int32(0), int32(3)
	codecZstd                     = int32(6)
)

func (c column) stored() int32 {
	if c.kind == kindTime {
		return kindWhole
	}
	return c.kind
}

// parquetPage is a column: which of its cells are there, as runs of like ones, and
// their values.
func parquetPage(rows []tableRow, column int) []byte {
	levels, values := make([]byte, 4), []byte(nil)
	for i := 0; i < len(rows); {
		there, n := rows[i].cells[column] != nil, 0
		for ; i < len(rows) && (rows[i].cells[column] != nil) == there; i++ {
			values = appendPlain(values, rows[i].cells[column])
			n++
		}
		levels = binary.AppendUvarint(levels, uint64(n)<<1)
		if there {
			levels = append(levels, 1)
		} else {
			levels = append(levels, 0)
		}
	}
	binary.LittleEndian.PutUint32(levels, uint32(len(levels)-4))
	return append(levels, values...)
}

func appendPlain(out []byte, cell any) []byte {
	switch v := cell.(type) {
	case string:
		return append(binary.LittleEndian.AppendUint32(out, uint32(len(v))), v...)
	case int64:
		return binary.LittleEndian.AppendUint64(out, uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	case time.Time:
		return binary.LittleEndian.AppendUint64(out, uint64(v.UnixMicro()))
	}
	return out
}
