package docker

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"
)

func TestALogDriverThatCannotBeReadIsTold(t *testing.T) {
	for driver, c := range map[string]struct {
		api  string
		want string
	}{
		"json-file": {"1.41", ""}, "local": {"1.41", ""}, "journald": {"1.41", ""},
		"none": {"1.41", "no log can be read"}, "syslog": {"1.40", "cannot be read before Docker 20.10"}, "fluentd": {"1.41", "own cache"},
	} {
		if got := logNote(system.Info{LoggingDriver: driver}, c.api); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", driver, got)
		}
	}
}
