package storage_test

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// The rate of the page cache is not the rate of the device, for any tool.
func TestBufferedWritesFlushedLaterAreNoCeiling(t *testing.T) {
	for name, busy := range map[string]int64{"flushed during the job": 35_000, "flushed after the job": 55_000} {
		s := judged(t, store(func(s *storing) {
			s.job, s.cache = write8, "buffered"
			s.job.Tool = "dd"
			s.every = func(c *record.Cell) {
				if c.Target == "host" {
					c.Reported.Seconds, c.Observed.Device.Busy = 35, busy*ms
					c.Ended, c.Observed.Took = 1+60_000*ms, 60_100*ms
				} else {
					c.Observed.Device, c.Observed.Disks = record.DeviceUse{}, record.DeviceUse{}
				}
			}
		}))
		text := strings.Join(only(t, s, "runc").Because, "; ")
		if bounded := strings.Contains(text, "which ran"); bounded != (busy == 35_000) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
