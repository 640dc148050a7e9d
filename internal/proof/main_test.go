package proof

import (
	"context"
	"os"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/load"
)

// tareEnv makes of this test's binary the tare command.
const tareEnv = "TARE_PROOF_COMMAND"

func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled { // a load's client or server
		os.Exit(code)
	}
	if os.Getenv(tareEnv) != "" {
		os.Exit(cli.Execute(context.Background(), os.Args[1:], cli.Streams{Out: os.Stdout, Err: os.Stderr}))
	}
	engines.Main(m)
}

const mib = 1 << 20
