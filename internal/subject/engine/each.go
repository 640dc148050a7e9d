package engine

import (
	"errors"
	"sync"
)

// parallel is the number of concurrent queries. It settles a hundred lanes quickly without
// loading the engine.
const parallel = 8

// Each calls do for 0 to n-1, up to 8 at a time.
func Each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
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
