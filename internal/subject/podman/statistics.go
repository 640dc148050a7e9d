package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

const (
	statsSource = "podman stats"
	// asking is how long podman may take to tell of all containers.
	asking = 30 * time.Second
)

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

// statistics brings what was told in the order of the lanes.
func statistics(lanes []int, states []cli.State, told []stats) ([]record.Statistic, error) {
	out := make([]record.Statistic, len(lanes))
	for i, c := range states {
		out[i] = record.Statistic{Lane: lanes[i], Source: statsSource, Memory: -1, CPU: -1}
		at := slices.IndexFunc(told, func(s stats) bool { return s.ContainerID == c.ID })
		if at < 0 {
			return nil, fmt.Errorf("podman stats says nothing of the container %s", c.ID)
		}
		// Nothing that runs has 0.
		if n := told[at].MemUsage; n > 0 && n <= math.MaxInt64 {
			out[i].Memory = int64(n)
		}
		if n := told[at].CPUNano; n > 0 && n <= math.MaxInt64 {
			out[i].CPU = int64(n)
		}
	}
	return out, nil
}

// Statistics implements subject.Reporter.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lanes, states, err := s.Occupied(ctx)
	if err != nil {
		return nil, err
	}
	var told []stats
	for some := range slices.Chunk(states, atOnce) {
		verb := []string{"stats", "--no-stream", "--no-reset", "--format", format}
		for _, c := range some {
			verb = append(verb, c.Name)
		}
		out, err := s.commands.podman.Run(ctx, verb...)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", s.commands.name, err)
		}
		for line := range strings.Lines(string(out)) {
			var one stats
			if json.Unmarshal([]byte(line), &one) == nil {
				told = append(told, one)
			}
		}
	}
	out, err := statistics(lanes, states, told)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", s.commands.name, err)
	}
	return out, nil
}

// Statistics implements subject.Reporter.
func (s *served) Statistics(ctx context.Context) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lanes, states, err := s.Occupied(ctx)
	if err != nil || len(lanes) == 0 {
		return nil, err
	}
	query := url.Values{"stream": {"false"}}
	for _, c := range states {
		query.Add("containers", c.Name)
	}
	reply, err := s.client.call(ctx, http.MethodGet, "/containers/stats", query)
	var told struct {
		Error any     `json:"Error"`
		Stats []stats `json:"Stats"`
	}
	if err == nil {
		err = json.Unmarshal(reply, &told)
	}
	if err == nil && told.Error != nil {
		err = fmt.Errorf("the service says: %.200v", told.Error)
	}
	var out []record.Statistic
	if err == nil {
		out, err = statistics(lanes, states, told.Stats)
	}
	if err != nil {
		return nil, fmt.Errorf("target %s: podman's statistics: %w", s.name, err)
	}
	return out, nil
}
