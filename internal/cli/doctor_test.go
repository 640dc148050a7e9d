package cli

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/doctor"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/record"
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
	out, _ := ends(t, ExitDone, "", "doctor", "--format", "json")
	for key := range needs {
		if !strings.Contains(out, `"`+key+`"`) && !strings.HasPrefix(key, "CAP_") { // not on older kernels
			t.Errorf("no check is called %s", key)
		}
	}
	refuses(t, words("doctor --for weight"), `there is no instrument "weight"; there are lifecycle, overhead`)
}

// handler is a target of which no more is known than what it says.
type handler struct {
	subject.Target
	info record.Target
}

func (h handler) Info() record.Target { return h.info }

func TestDoctorNamesWhoWouldRunKata(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	of := func(name, config string) find.Found {
		return find.Found{Name: name, Target: handler{info: record.Target{Name: name, Config: map[string]string{
			"kata config": config, "kata version": "3.3.0 (Golang)", "hypervisor": "qemu", "sandbox_cgroup_only": "true"}}}}
	}
	lacking := find.Found{Name: "cri+containerd/kata-clh", Why: &subject.Unavailable{Reason: "its shim is not here"}}
	for name, c := range map[string]struct {
		found  []find.Found
		status doctor.Status
		why    string
	}{
		"pods need a network":              {[]find.Found{of("cri+containerd/kata", "/a"), of("containerd/kata", "/b"), lacking}, doctor.OK, "would run as cri+containerd/kata, containerd/kata; weigh it: tare overhead cri+containerd/kata --network bridge"},
		"a handler without its shim":       {[]find.Found{of("cri+containerd/runc", ""), lacking}, doctor.Missing, "no engine here would run it, though there are handlers for it: cri+containerd/kata-clh"},
		"none, where nothing is installed": {nil, doctor.Missing, "no engine here would run it; "},
	} {
		if got := kataCheck(c.found); got.Status != c.status || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := targetCheck(of("cri+containerd/kata", "/a")); got.Why != "Kata 3.3.0 (Golang), qemu, sandbox_cgroup_only=true, /a" {
		t.Errorf("%+v", got)
	}
}
