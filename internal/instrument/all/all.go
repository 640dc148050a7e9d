// Package all is the registry: a new instrument is a folder and a line here, and
// another in package cli, which says how it is performed.
package all

import (
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
)

// Instruments are those that there are, in the order in which people meet them.
var Instruments = instrument.List{
	lifecycle.Instrument,
	overhead.Instrument,
	storage.Instrument,
	startup.Instrument,
	bpf.Instrument,
	density.Instrument,
	app.Instrument,
}
