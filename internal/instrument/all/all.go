// Package all is the registry of instruments. To add an instrument, create its folder,
// list it here, and its Perform in package cli.
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

// Instruments lists all instruments in display order.
var Instruments = instrument.List{
	lifecycle.Instrument,
	overhead.Instrument,
	storage.Instrument,
	startup.Instrument,
	bpf.Instrument,
	density.Instrument,
	app.Instrument,
}
