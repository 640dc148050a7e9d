package nodestat

import (
	"bytes"
	"errors"
	"math"

	"github.com/tare-bench/tare/internal/node/machine"
)

var (
	pagesets   = []byte("pagesets")
	countField = []byte("count:")
	zoneStart  = []byte("Node ")
)

// listed returns the number of free pages on the lists of every CPU and zone
// (mm/page_alloc.c, "pcp") from /proc/zoneinfo:
//
//	Node 0, zone   Normal
//	  …
//	  pagesets
//	    cpu: 0
//	              count:    63
//
// They are in neither MemFree nor MemAvailable.
func listed(b []byte) (pages int64, err error) {
	inside, zones := false, 0
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, zoneStart) {
			inside = false
			zones++
			continue
		}
		line = bytes.TrimSpace(line)
		if bytes.Equal(line, pagesets) {
			inside = true
			continue
		}
		digits, ok := bytes.CutPrefix(line, countField)
		if !inside || !ok {
			continue
		}
		n, ok := machine.Number(bytes.TrimSpace(digits))
		if !ok || n > math.MaxInt32 {
			return 0, errors.New("parse /proc/zoneinfo: a count is not a number of pages")
		}
		pages += n
	}
	if zones == 0 {
		return 0, errors.New("parse /proc/zoneinfo: it has no zones; check whether something is mounted over it")
	}
	return pages, nil
}
