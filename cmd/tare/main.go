// Command tare weighs container runtimes: what starting, holding and running a
// workload costs beyond the workload itself. tare --help is the manual.
package main

import (
	"os"

	"github.com/tare-bench/tare/internal/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:], command.Standard()))
}
