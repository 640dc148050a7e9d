package export

import (
	_ "embed" // for the schema
	"encoding/json"
	"fmt"
	"io"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Schema is the JSON Schema of the output of [JSON].
//
//go:embed figures.schema.json
var Schema []byte

// document is one run. Values are in the unit of their figure and are never rounded.
type document struct {
	head
	Plan     json.RawMessage  `json:"plan"`
	Targets  []record.Target  `json:"targets"`
	Failed   int              `json:"failed"`
	Total    int              `json:"total"`
	Findings []record.Finding `json:"findings"`
	Figures  []figure.Figure  `json:"figures"`
}

// JSON writes an object for one run and a list for several. Foreign text is preserved for JSON
// readers. Terminal control characters are escaped.
func JSON(w io.Writer, all []Document) error {
	documents := make([]document, len(all))
	for i, d := range all {
		documents[i] = document{
			head: headOf(d.Record), Plan: d.Record.Header.Plan, Targets: append([]record.Target{}, d.Record.Targets...),
			Failed: d.Failed, Total: d.Total, Findings: append([]record.Finding{}, d.Findings...), Figures: append([]figure.Figure{}, d.Figures...),
		}
		if len(documents[i].Plan) == 0 {
			documents[i].Plan = json.RawMessage("null")
		}
	}
	var value any = documents
	if len(documents) == 1 {
		value = documents[0]
	}
	return Value(w, value)
}

// Value writes a value as JSON that is safe for a terminal.
func Value(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	_, err = w.Write(append(term.CleanJSON(text), '\n'))
	return err
}

// Lines writes one JSON value per line, for programs that follow a file.
func Lines(w io.Writer, values []any) error {
	for _, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write the report as JSON: %w", err)
		}
		if _, err := w.Write(append(term.CleanJSON(text), '\n')); err != nil {
			return err
		}
	}
	return nil
}
