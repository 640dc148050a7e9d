package load

import (
	stdlog "log"

	"fortio.org/log"
)

// When imported, fortio's log changes the flags of the standard logger and writes to stderr.
// Undo both.
func init() {
	log.SetLogLevelQuiet(log.Critical) // the highest level
	stdlog.SetFlags(stdlog.LstdFlags)
}

// listen makes fortio's log write its errors to f, as lines of JSON.
func listen(f *failures) {
	log.Config.JSON, log.Config.LogFileAndLine, log.Config.GoroutineID = true, false, false
	log.Config.ForceColor = false
	log.SetOutput(f)
	log.SetLogLevelQuiet(log.Error)
}
