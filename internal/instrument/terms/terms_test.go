package terms

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestParsePrecision(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"5%": 0.05, " 5 % ": 0.05, "0.05": 0.05, "0.5%": 0.005, "99.9%": 0.999, "1e-3": 0.001} {
		if got, err := Precision.Parse(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "0", "0%", "1", "100%", "5", "-5%", "NaN", "Inf", "NaN%", "five", "5%%"} {
		if got, err := Precision.Parse(text); err == nil || !strings.Contains(err.Error(), "5% or 0.05") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestParseMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"536870912": 512 << 20, "512Mi": 512 << 20, "512MiB": 512 << 20, "512 MiB": 512 << 20, "512M": 512e6, "512MB": 512e6,
		"1Ki": 1 << 10, "1k": 1e3, "1K": 1e3, "2GiB": 2 << 30, "2G": 2e9, "1Ti": 1 << 40, "7B": 7, "9223372036854775807": math.MaxInt64,
	} {
		check.Equal(t, text, must.Get(ParseMemory(text))(t), want)
	}
	for _, text := range []string{"", "Mi", "-1", "1.5Gi", "512mi", "512 Mi B", "9223372036854775808", "8388608Ti", "many"} {
		if got, err := ParseMemory(text); err == nil || !strings.Contains(err.Error(), "512Mi") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestTargetSettingsOverrideItsEngines(t *testing.T) {
	t.Parallel()
	e := Engines{
		"docker":          {Address: "unix:///a", Network: "bridge"},
		"docker/crun":     {Address: "unix:///b"},
		"docker+cli":      {Command: "/usr/bin/docker"},
		"cri":             {Address: "unix:///never"},
		"cri+cri-o/crun":  {Network: "host"},
		"cri+cri-o":       {Address: "unix:///c"},
		"containerd/runc": {Namespace: "own", Args: []string{"x"}},
	}
	for name, want := range map[string]setting.Engine{
		"docker/runc":         {Address: "unix:///a", Network: "bridge"},
		"docker/crun":         {Address: "unix:///b", Network: "bridge"},
		"docker+cli/crun":     {Address: "unix:///a", Network: "bridge", Command: "/usr/bin/docker"},
		"cri+cri-o/crun":      {Address: "unix:///c", Network: "host"},
		"cri+cri-o+cli/runc":  {Address: "unix:///c"},
		"cri+containerd/runc": {},
		"containerd/runc":     {Namespace: "own", Args: []string{"x"}},
		"runc":                {},
	} {
		check.Equal(t, name, e.Of(name), want)
	}
}

func TestParseScale(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"0.01": 0.01, "1%": 0.01, " 2 % ": 0.02, "1": 1, "1000": 1000, "0.000001": 0.000001, "0": 0} {
		check.Equal(t, text, must.Get(parseScale(text))(t), want)
	}
	for _, text := range []string{"", "%", "-1", "1e-2", "NaN", "Inf", "1001", "0.0000001", "half", "1/100"} {
		if got, err := parseScale(text); err == nil || !strings.Contains(err.Error(), "is not a scale: write one from 0.000001 to 1000") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, scale := range []float64{-1, math.NaN(), math.Inf(1), 1001} {
		if err := CheckScale(scale); err == nil || !strings.Contains(err.Error(), "is not a scale") {
			t.Errorf("%g: %v", scale, err)
		}
	}
}

func TestSplitTargetCutsAtTheFirstEqualsSign(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{"runc": {"runc", ""}, "a=/b": {"a", "/b"}, "a=/b=c": {"a", "/b=c"}} {
		if name, path := SplitTarget(text); name != want[0] || path != want[1] {
			t.Errorf("%q gives %q, %q", text, name, path)
		}
	}
}

func TestWorkloadErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	if all := CheckWorkload(&setting.Workload{Env: []setting.Variable{"=x"}}); len(all) != 1 || !strings.Contains(all.Error(), "invalid variable name") {
		t.Error(all)
	}
}

type cached struct{ Cache Cache }

func (c *cached) Declare(s *option.Set) { DeclareCache(s, &c.Cache, "start") }

func (c cached) MarshalJSON() ([]byte, error) { return option.Marshal(&c) }

func TestCacheDefaultsToWarm(t *testing.T) {
	t.Parallel()
	for given, want := range map[Cache]struct{ stored, wrong string }{
		"": {stored: "{}"}, "warm": {stored: "{}"}, "cold": {stored: `{"cache":"cold"}`}, "tepid": {wrong: "write warm or cold"},
	} {
		c := cached{given}
		err := option.Of(&c).Finish(context.Background())
		if (err != nil) != (want.wrong != "") || err != nil && !strings.Contains(err.Error(), want.wrong) {
			t.Errorf("%q: %v, want %q", given, err, want.wrong)
		}
		if text, wrong := c.MarshalJSON(); err == nil && (wrong != nil || string(text) != want.stored) {
			t.Errorf("%q is stored as %s, %v", given, text, wrong)
		}
		if told := c.Cache.Told("start"); (len(told) > 0) != (c.Cache == Cold) {
			t.Errorf("%q is described as %q", given, told)
		}
	}
}

func TestLoadIsAURLOrACommand(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"http://:8080/": true, "https://:8443/a?b=c": true, "exec:/usr/bin/ab -n 10": true,
		"http://example.org:80/": false, "http:///": false, "http://me:word@:80/": false, "ftp://:21/": false, "exec:ab": false, "exec:": false, `exec:/bin/sh -c "a`: false, "": false,
	} {
		if err := CheckLoad(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if words, is := LoadCommand("exec:/bin/x  a 'b c'"); !is || !slices.Equal(words, []string{"/bin/x", "a", "b c"}) {
		t.Errorf("command %q", words)
	}
	if l := (Load{Connections: 3}).Filled(); l.Connections != 3 || l.Duration != 10*time.Second || l.Answer != 3*time.Second {
		t.Errorf("with defaults: %+v", l)
	}
}
