package podman

import (
	"context"

	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/target/engine"
)

func newService(_ context.Context, name, _ string, _ target.Engine) (target.Target, error) {
	return nil, engine.Unavailable(name, "use podman/RUNTIME", "not yet")
}
