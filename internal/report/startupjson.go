package report

import (
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/record"
)

// startupDocument is the JSON report. Times are ns: of estimates and gaps lengths, of
// the start that is drawn moments on its own clock.
type startupDocument struct {
	documentHead
	TimeUnit string         `json:"time_unit"`
	Startup  *judge.Startup `json:"startup"`
}

func startupDocumentOf(rec *record.Record, v *judge.Startup) startupDocument {
	return startupDocument{documentHead: headOf(rec), TimeUnit: "ns", Startup: v}
}
