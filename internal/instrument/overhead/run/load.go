package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// asked measures workloads while clients send requests to each. Memory by role is read
// after the requests, as with a command. Peaks of groups and series cover the requests.
func (v *visit) asked(ctx context.Context, p overhead.Phase) error {
	settled := v.settle(ctx)
	all, err := v.clients(ctx)
	defer func() {
		for _, c := range all {
			_ = c.Close() // the results are complete by then
		}
	}()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return v.skip(p, err.Error(), "tare app measures one workload and reports the reasons in detail")
	}
	w, err := v.measure(ctx, p, settled, func() (*record.Work, *record.Failure) {
		o := v.options.Plan.Filled()
		work := &record.Work{Command: fmt.Sprintf("load %s -c %d -t %v", o.URL, o.Connections, o.Duration), Begun: machine.Now()}
		results, errs := make([]load.Result, len(all)), make([]error, len(all))
		var asking sync.WaitGroup
		for i, c := range all {
			asking.Go(func() { results[i], errs[i] = c.Run(ctx) })
		}
		asking.Wait()
		work.Ended = machine.Now()
		sent := load.Merge(results).Sent
		work.QPS = sent.QPS // by the clients' clocks: the times of work include setup and teardown
		work.Answers, work.Errors, work.Version = sent.Requests-sent.Errors, sent.Errors, sent.Client
		if failed := errors.Join(errs...); failed != nil {
			return work, &record.Failure{Kind: record.FailWorkload, Detail: failed.Error()}
		}
		return work, nil
	})
	return v.store(ctx, w, err)
}

// clients starts clients that wait to send requests to the workload of each sandbox.
func (v *visit) clients(ctx context.Context) (all []*load.Clients, err error) {
	o := v.options.Plan.Filled()
	for n := range v.made {
		address, inside, err := subject.Asked(v.Target.Session, n, o.URL)
		if err != nil {
			return all, err
		}
		c, err := load.Start(ctx, load.ClientOptions{URL: address, Net: inside, Connections: o.Connections, QPS: o.Rate, KeepAlive: !o.Anew,
			Duration: o.Duration, Timeout: o.Answer})
		inside.Close() // the clients have joined it by then; a no-op without a namespace
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}
