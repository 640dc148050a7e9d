package plan

import (
	"bytes"
	_ "embed"
)

//go:embed plan.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of plan files, for editors.
// It knows the shape and the ranges of values; Parse knows the rest.
func Schema() []byte {
	return bytes.Clone(schema)
}
