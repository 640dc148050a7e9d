package logs

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// binaryField is a field as `journalctl -o export` writes what is not printable.
func binaryField(key, value string) string {
	return key + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

func TestAnyNumberOfLinesThatTellOfDroppedMessagesIsASum(t *testing.T) {
	s := source{stats: &Stats{}}
	s.stats.Suppressed = math.MaxInt64 - 1
	s.plain([]byte("Suppressed 3 messages from kata.service"), &carrier{}, nil, false)
	if s.stats.Suppressed != math.MaxInt64 {
		t.Errorf("%d", s.stats.Suppressed)
	}
}

func TestAJournalThatIsToldToBeOneNeedsNoCursor(t *testing.T) {
	text := "_PID=7\n_SOURCE_REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=hello\n\n"
	for _, told := range []bool{false, true} {
		n := 0
		_, err := Read(context.Background(), []Source{{Reader: strings.NewReader(text), Journal: told}}, func(*Event) error {
			n++
			return nil
		})
		if err != nil || n != int(b2i(told)) {
			t.Errorf("told %v: %d events, %v", told, n, err)
		}
	}
}
