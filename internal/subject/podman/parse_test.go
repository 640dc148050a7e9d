package podman

import (
	"strings"
	"testing"
)

func TestTheIDsAreTakenOffTheLogsOfSeveralContainers(t *testing.T) {
	if got := unprefixed("298aa3194672 tare-probe/1 a 1\n9e9ba052b17c tare-probe/1 b 2\n", true); got != "tare-probe/1 a 1\ntare-probe/1 b 2\n" {
		t.Errorf("%q", got)
	}
}

func TestInfoThatSaysNothingIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"version":{"Version":"4.3.1"}}`, "panic: x"} {
		if _, err := parseInfo([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	i, err := parseInfo([]byte(`{"host":{"ociRuntime":{"name":"crun","version":"crun version 1.8.1\ncommit: x"}},"version":{"Version":"2.2.1"}}`))
	if err != nil || !i.isCrun() || i.runtimeBanner() != "crun version 1.8.1" {
		t.Errorf("%+v, %v", i, err)
	}
	if err := i.check("podman/crun"); err == nil || !strings.Contains(err.Error(), "older") {
		t.Errorf("version 2: %v", err)
	}
	if i.Host.LogDriver = "none"; i.logDriver() != "k8s-file" {
		t.Error("a driver that keeps nothing was left")
	}
}
