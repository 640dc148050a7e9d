// Command tare weighs container runtimes: what starting, holding and running a
// workload costs beyond the workload itself. tare --help is the manual.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tare-bench/tare/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal ends the run in order; a second one ends the process,
	// and tare clean removes what that leaves.
	context.AfterFunc(ctx, stop)
	code := command.Execute(ctx, os.Args[1:], command.Standard())
	stop()
	os.Exit(code)
}
