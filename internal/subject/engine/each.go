package engine

import (
	"errors"
	"sync"
)

// atOnce is how many questions are asked at a time: enough to be done with a
// hundred lanes in a moment, few enough to leave the engine in peace.
const atOnce = 8

// Each does something for 0 to n-1, some at a time, none of it timed.
func Each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
