package cli

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/doctor"
)

// What only some instruments need is told to those alone; and no key of the table is
// one that no check has.
func TestDoctorTellsAnInstrumentOfWhatItNeeds(t *testing.T) {
	for instrument, wanted := range map[string]map[string]bool{
		"lifecycle": {"CAP_BPF": false, "fio": false, "docker/runc": true, "CAP_SYS_ADMIN": true},
		"overhead":  {"CAP_BPF": false, "fio": true, "dd": false, "CAP_SYS_PTRACE": true},
		"storage":   {"fio": true, "dd": true, "BPF": false},
		"startup":   {"CAP_BPF": true, "watching starts": true, "BPF statistics": false},
		"bpf":       {"CAP_BPF": true, "BPF statistics": true, "docker/runc": false, "overlayfs": false, "cgroups": true},
	} {
		for name, want := range wanted {
			c := doctor.Check{Area: doctor.AreaKernel, Name: name}
			if strings.Contains(name, "/") {
				c.Area = doctor.AreaEngine
			}
			if needed(c, instrument) != want {
				t.Errorf("%s goes by %s: %v", instrument, name, !want)
			}
		}
	}
	code, out, _ := tare(t, "doctor", "--format", "json")
	for key := range needs {
		if code != ExitDone || !strings.Contains(out, `"`+key+`"`) && !strings.HasPrefix(key, "CAP_") { // not on older kernels
			t.Errorf("exit %d, and no check is called %s", code, key)
		}
	}
	if code, _, stderr := tare(t, "doctor", "--for", "weight"); code != ExitUsage || !strings.Contains(stderr, `there is no instrument "weight"; there are lifecycle, overhead`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
