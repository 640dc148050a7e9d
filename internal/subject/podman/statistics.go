package podman

import (
	"context"
	"encoding/json"
	"slices"
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

// statistics asks podman, a hundred containers at a time.
func (c *commands) statistics(ctx context.Context, states []engine.State) (map[string]engine.Usage, error) {
	told := map[string]engine.Usage{}
	for some := range slices.Chunk(states, atOnce) {
		verb := []string{"stats", "--no-stream", "--no-reset", "--format", format}
		for _, s := range some {
			verb = append(verb, s.Name)
		}
		out, err := c.podman.Run(ctx, verb...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			var one stats
			if json.Unmarshal([]byte(line), &one) == nil {
				told[one.ContainerID] = engine.Usage{Memory: engine.Amount(one.MemUsage), CPU: engine.Amount(one.CPUNano)}
			}
		}
	}
	return told, nil
}
