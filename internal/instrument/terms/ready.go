package terms

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Ready declares when a workload is ready.
func Ready(s *option.Set, p *setting.Ready) {
	option.Text(s, p, "ready", "when the workload is ready, polled from outside: "+setting.ReadyForms, option.OmitEmpty, option.Must(setting.Ready.Check))
}
