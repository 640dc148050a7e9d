package terms

import (
	"context"

	"github.com/tare-bench/tare/internal/core/option"
)

// Cache is what of the page cache whatever is timed finds.
type Cache string

// What it may find. Warm is what records of before there was a choice are, too.
const (
	Warm Cache = ""     // what is there; warm-up rounds have read what a start reads
	Cold Cache = "cold" // as little as the kernel gives up: the node's is dropped before

	warm Cache = "warm" // as users write it
)

// DeclareCache declares what it finds; what is whatever is timed.
func DeclareCache(s *option.Set, c *Cache, what string) {
	option.Text(s, c, "cache", "page cache before each "+what+": warm leaves it as it is; cold drops that of the whole node, which its other programs notice (default: warm)",
		option.OmitEmpty, option.Choices(string(warm), string(Cold)))
	s.Before(func(context.Context) error {
		if *c == warm {
			*c = Warm
		}
		return nil
	})
}

// Told says it in the head of a report, where there is something to say.
func (c Cache) Told(what string) []string {
	if c != Cold {
		return nil
	}
	return []string{"cold: before each " + what + ", and not in its time, the page cache, dentries and inodes of the whole node were dropped; programs that run keep what they have mapped"}
}
