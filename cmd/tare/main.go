// Command tare weighs container runtimes: what starting, holding and running a
// workload costs beyond the workload itself. tare --help is the manual.
package main

import (
	"os"

	"github.com/tare-bench/tare/internal/command"
	"github.com/tare-bench/tare/load"
)

func main() {
	// The clients and servers of a load are this program, too.
	if code, handled := load.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(command.Main(os.Args[1:], command.Standard()))
}
