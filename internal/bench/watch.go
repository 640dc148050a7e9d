package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/node/tracer"
)

const watchRounds = 30

// watched tells what being watched costs a process that does nothing.
func (b *bench) watched() error {
	fmt.Println("watch: processes that do nothing, one after the other")
	once := func(watched bool) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			if watched {
				w, err := tracer.Open()
				if err != nil {
					return 0, err
				}
				defer func() { _ = w.Close() }()
			}
			begin := time.Now()
			for range 200 {
				p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
				if err != nil {
					return 0, err
				}
				if _, err := p.Wait(); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(begin)) / 200, nil
		}
	}
	sides := []side{{"fork, exec and exit of true", once(false)}, {"the same again (A/A)", once(false)}, {"watched", once(true)}}
	values, err := interleave(b.ctx, watchRounds, sides)
	if err != nil {
		return err
	}
	show(sides, values)
	fmt.Println()
	return nil
}
