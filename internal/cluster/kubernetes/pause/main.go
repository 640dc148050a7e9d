// Command pause holds a pod: it waits until it is told to end. It says nothing, for
// in gVisor's sandboxes there is nothing to say it to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
