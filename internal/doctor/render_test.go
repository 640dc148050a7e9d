package doctor

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

var sample = []Check{
	{AreaPrivilege, "root", "uid 0", OK, "needed", ""},
	{AreaKernel, "overlayfs", "not loaded", Limited, "can be loaded", "modprobe overlay"},
	{AreaPrivilege, "CAP_SYS_RESOURCE", "", Limited, "withheld", ""},
	{AreaRuntime, "crun\x1b[2J", "1.8.1\u202e", Missing, "no\nsuch file", "apt-get install crun"},
}

func TestRender(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, Render(&out, sample))
	if want := must.Read(t, "testdata/render.txt"); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRenderJSON(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, RenderJSON(&out, sample))
	var back report
	must.OK(t, json.Unmarshal(out.Bytes(), &back))
	if back.Schema != 1 || !reflect.DeepEqual(back.Checks[:3], sample[:3]) {
		t.Errorf("came back as %+v", back)
	}
	if foreign := back.Checks[3]; foreign.Name != `crun\x1b[2J` || foreign.Version != `1.8.1\u202e` {
		t.Errorf("not cleaned: %+v", foreign)
	}
	for _, field := range []string{`"schema"`, `"checks"`, `"area"`, `"name"`, `"version"`, `"status"`, `"why"`, `"fix"`} {
		if !strings.Contains(out.String(), field) {
			t.Errorf("field %s is missing", field)
		}
	}

	out.Reset()
	if err := RenderJSON(&out, nil); err != nil || !strings.Contains(out.String(), `"checks": []`) {
		t.Errorf("no checks: %q, %v", out.String(), err)
	}
}
