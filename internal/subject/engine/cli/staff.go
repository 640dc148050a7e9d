package cli

import (
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/kata"
)

// Staff are the processes that stand beside containers: monitors, shims, and
// the VMMs of those that run in one.
func Staff(held []State) []subject.Process {
	var ids []string
	for _, c := range held {
		ids = append(ids, c.Name, c.ID) // an id is empty until the container was seen, and mentions nothing then
	}
	return kata.Beside(ids)
}
