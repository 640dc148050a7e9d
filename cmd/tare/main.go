// Command tare measures container runtimes: what starting, keeping and running a workload
// costs beyond the workload itself. tare --help is the manual.
package main

import (
	"os"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/load"
)

func main() {
	// The clients and servers of a load run this program too.
	if code, handled := load.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], cli.Standard()))
}
