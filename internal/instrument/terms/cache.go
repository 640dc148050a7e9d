package terms

import (
	"context"

	"github.com/tare-bench/tare/internal/core/option"
)

// Cache is the state of the page cache before each timed operation.
type Cache string

// Values of Cache. Records that predate the option are Warm.
const (
	Warm Cache = ""     // unchanged; warm-up rounds have read what a start reads
	Cold Cache = "cold" // the node's cache is dropped before each operation, as far as the kernel allows

	warm Cache = "warm" // user-facing spelling of Warm
)

// DeclareCache declares the cache option. what names the timed operation.
func DeclareCache(s *option.Set, c *Cache, what string) {
	option.Text(s, c, "cache", "page cache before each "+what+": warm leaves it unchanged; cold drops it for the whole node, which affects other programs (default: warm)",
		option.OmitEmpty, option.Choices(string(warm), string(Cold)))
	s.Before(func(context.Context) error {
		if *c == warm {
			*c = Warm
		}
		return nil
	})
}

// Told returns the note on a cold cache for the head of a report, or nil.
func (c Cache) Told(what string) []string {
	if c != Cold {
		return nil
	}
	return []string{"cold: before each " + what + ", outside the measured time, the page cache, dentries and inodes of the whole node were dropped; running programs keep their mapped pages"}
}
