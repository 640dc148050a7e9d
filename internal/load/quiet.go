package load

import (
	stdlog "log"

	"fortio.org/log"
)

// fortio's log, as soon as it is imported, changes the flags of the standard
// library's and says on stderr what it thinks of. In tare neither is wanted.
func init() {
	log.SetLogLevelQuiet(log.Critical) // the highest that there is
	stdlog.SetFlags(stdlog.LstdFlags)
}

// listen makes fortio's log write its errors, one line of JSON each, to f.
func listen(f *failures) {
	log.Config.JSON, log.Config.LogFileAndLine, log.Config.GoroutineID = true, false, false
	log.Config.ForceColor = false
	log.SetOutput(f)
	log.SetLogLevelQuiet(log.Error)
}
