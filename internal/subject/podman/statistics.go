package podman

import (
	"encoding/json"
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
)

const statsSource = "podman stats"

// stats is what matters of libpod's ContainerStats. Podman's command shows the
// amounts for people; these are the numbers behind.
type stats struct {
	ContainerID string `json:"ContainerID"`
	MemUsage    uint64 `json:"MemUsage"` // bytes
	CPUNano     uint64 `json:"CPUNano"`  // ns since the start
}

// format makes `podman stats` print those: what it embeds has the numbers, where
// its own methods of the same names have the text.
const format = `{{"{"}}"ContainerID":"{{.ContainerStats.ContainerID}}","MemUsage":{{.ContainerStats.MemUsage}},"CPUNano":{{.ContainerStats.CPUNano}}{{"}"}}`

// parseStats reads that.
func parseStats(out []byte, _ []engine.State, told map[string]engine.Usage) {
	for line := range strings.Lines(string(out)) {
		var one stats
		if json.Unmarshal([]byte(line), &one) == nil {
			told[one.ContainerID] = engine.Usage{Memory: engine.Amount(one.MemUsage), CPU: engine.Amount(one.CPUNano)}
		}
	}
}
