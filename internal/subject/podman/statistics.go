package podman

import (
	"encoding/json"
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
)

const statsSource = "podman stats"

// stats is the relevant part of libpod's ContainerStats, which has exact numbers.
type stats struct {
	ContainerID string `json:"ContainerID"`
	MemUsage    uint64 `json:"MemUsage"` // bytes
	CPUNano     uint64 `json:"CPUNano"`  // ns since the start
}

// format makes `podman stats` print those numbers: the embedded ContainerStats has them, where
// podman's methods of the same names return formatted text.
const format = `{{"{"}}"ContainerID":"{{.ContainerStats.ContainerID}}","MemUsage":{{.ContainerStats.MemUsage}},"CPUNano":{{.ContainerStats.CPUNano}}{{"}"}}`

// parseStats parses what `podman stats` prints in that format.
func parseStats(out []byte, _ []engine.State, used map[string]engine.Usage) {
	for line := range strings.Lines(string(out)) {
		var one stats
		if json.Unmarshal([]byte(line), &one) == nil {
			used[one.ContainerID] = engine.Usage{Memory: engine.Amount(one.MemUsage), CPU: engine.Amount(one.CPUNano)}
		}
	}
}
