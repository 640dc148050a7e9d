package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
)

// node is the part of JSON Schema that the plan's schema uses.
type node struct {
	Ref                  string           `json:"$ref"`
	Defs                 map[string]*node `json:"$defs"`
	Properties           map[string]*node `json:"properties"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"` // false, or the schema of all values
	Items                *node            `json:"items"`
	OneOf                []*node          `json:"oneOf"`
	Enum                 []string         `json:"enum"`
	Const                any              `json:"const"`
	Pattern              string           `json:"pattern"`
	Minimum, Maximum     *float64
	MaxItems, MaxLength  *int
	Default              any    `json:"default"`
	Description          string `json:"description"`
}

func readSchema(t *testing.T) *node {
	t.Helper()
	root := new(node)
	if err := json.Unmarshal(Schema(), root); err != nil {
		t.Fatal(err)
	}
	return root
}

// resolve follows a reference, also that of what may be a name instead.
func (n *node) resolve(root *node) *node {
	for _, one := range n.OneOf {
		if of := root.Defs[strings.TrimPrefix(one.Ref, "#/$defs/")]; of != nil && of.Properties != nil {
			return of
		}
	}
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		return root.Defs[name]
	}
	return n
}

func TestTheSchemaHasEveryFieldAndNoOther(t *testing.T) {
	root := readSchema(t)
	compareFields(t, root, "plan", root, reflect.TypeFor[Plan]())
}

func compareFields(t *testing.T, root *node, path string, schema *node, of reflect.Type) {
	schema = schema.resolve(root)
	if string(schema.AdditionalProperties) != "false" {
		t.Errorf("the schema of %s takes unknown fields", path)
	}
	unseen := make(map[string]bool)
	for name := range schema.Properties {
		unseen[name] = true
	}
	for i := range of.NumField() {
		name := of.Field(i).Tag.Get("yaml")
		if name == "-" {
			continue // of records only
		}
		property, ok := schema.Properties[name]
		if !ok {
			t.Errorf("the schema has no %s.%s", path, name)
			continue
		}
		delete(unseen, name)
		if property.Description == "" && property.resolve(root).Description == "" {
			t.Errorf("the schema does not explain %s.%s", path, name)
		}
		property = property.resolve(root)
		inner := of.Field(i).Type
		if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			property, inner = property.Items, inner.Elem()
		}
		if inner.Kind() == reflect.Map && inner.Elem().Kind() == reflect.Struct {
			each := new(node)
			if err := json.Unmarshal(property.AdditionalProperties, each); err != nil {
				t.Errorf("%s.%s: %v", path, name, err)
				continue
			}
			property, inner = each, inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			compareFields(t, root, path+"."+name, property, inner)
		}
	}
	for name := range unseen {
		t.Errorf("the schema has %s.%s, which no plan has", path, name)
	}
}

// The fields that Parse reads are those of the types: it lists them when it
// meets another.
func TestParseReadsEveryFieldAndNoOther(t *testing.T) {
	_, err := Parse("a", []byte("zz: 1\nversion: 1\nmeasure:\n- zz: 1\n- lifecycle: {zz: 1, engines: {docker: {zz: 1}}, limits: {zz: 1}}\n- overhead: {zz: 1, limits: {zz: 1}, check: {zz: 1}}\n"+
		"- storage: {zz: 1, jobs: [{zz: 1, options: [{zz: 1, options: [{zz: 1}]}]}], limits: {zz: 1}}\n- startup: {zz: 1, commands: [{zz: 1}], limits: {zz: 1}}\n- bpf: {zz: 1}\n"))
	if err == nil {
		t.Fatal("unknown fields were taken")
	}
	lists := regexp.MustCompile(`the fields are (.*)`).FindAllStringSubmatch(err.Error(), -1)
	types := []reflect.Type{reflect.TypeFor[Plan](), reflect.TypeFor[Measure](), reflect.TypeFor[Lifecycle](), reflect.TypeFor[subject.Engine](), reflect.TypeFor[subject.Limits](),
		reflect.TypeFor[Overhead](), reflect.TypeFor[subject.Limits](), reflect.TypeFor[PodFixed](),
		reflect.TypeFor[Storage](), reflect.TypeFor[Job](), reflect.TypeFor[Section](), reflect.TypeFor[Option](), reflect.TypeFor[subject.Limits](),
		reflect.TypeFor[Startup](), reflect.TypeFor[StartCommand](), reflect.TypeFor[subject.Limits](),
		reflect.TypeFor[BPF]()}
	if len(lists) != len(types) {
		t.Fatalf("%d lists in\n%v", len(lists), err)
	}
	for i, of := range types {
		var tags []string
		for j := range of.NumField() {
			if tag := of.Field(j).Tag.Get("yaml"); tag != "-" {
				tags = append(tags, tag)
			}
		}
		if got := strings.Split(lists[i][1], ", "); !slices.Equal(got, tags) {
			t.Errorf("%v: Parse reads %v, the type has %v", of, got, tags)
		}
	}
}

func TestTheSchemaStatesTheSameRanges(t *testing.T) {
	root := readSchema(t)
	lifecycle, limits := root.Defs["lifecycle"].Properties, root.Defs["limits"].Properties
	storage, job := root.Defs["storage"].Properties, root.Defs["job"].Properties
	overhead, free, cpu := root.Defs["overhead"].Properties, root.Defs["freeLimits"].Properties, root.Defs["cpuLimit"]
	if got := root.Properties["version"].Const; got != float64(Version) {
		t.Errorf("version is %v", got)
	}
	var ops []string
	for _, op := range subject.Ops {
		ops = append(ops, string(op))
	}
	if got := lifecycle["ops"].Items.Enum; !slices.Equal(got, ops) {
		t.Errorf("ops are %v", got)
	}
	for name, test := range map[string]struct {
		schema   *node
		min, max float64
	}{
		"lanes":      {root.Defs["laneCount"], 1, MaxLanes},
		"rounds":     {lifecycle["rounds"], 1, MaxRounds},
		"warmup":     {lifecycle["warmup"], 0, MaxRounds},
		"memory":     {limits["memory"].OneOf[0], MinMemory, 0},
		"pids":       {limits["pids"], 1, 0},
		"cpu_shares": {limits["cpu_shares"], MinCPUShares, MaxCPUShares},
		"cpu":        {cpu.OneOf[1], MinCPU, MaxCPU},

		"sandboxes":       {root.Defs["sandboxCount"], 1, MaxSandboxes},
		"visits":          {overhead["rounds"], 1, MaxRounds},
		"free memory":     {free["memory"].OneOf[1], MinMemory, 0},
		"free pids":       {free["pids"], 0, 0},
		"free cpu_shares": {free["cpu_shares"].OneOf[1], MinCPUShares, MaxCPUShares},
		"podFixed cpu":    {root.Defs["podFixed"].Properties["cpu"].OneOf[0], 0, MaxCPU},

		"connections":      {root.Defs["connectionCount"], 1, MaxConnections},
		"services":         {root.Defs["serviceCount"], 1, MaxServices},
		"clients":          {root.Defs["bpf"].Properties["instances"], 1, MaxInstances},
		"rate":             {root.Defs["bpf"].Properties["qps"], 0, MaxQPS},
		"weights":          {root.Defs["bpf"].Properties["heavy"].Items, 0, MaxHeavy},
		"client CPUs":      {root.Defs["bpf"].Properties["cpus"], 0, MaxCPU},
		"starts":           {root.Defs["startup"].Properties["rounds"], 1, MaxRounds},
		"starts before":    {root.Defs["startup"].Properties["warmup"], 0, MaxRounds},
		"storage's rounds": {storage["rounds"], 1, MaxRounds},
		"scale":            {storage["scale"].OneOf[1], MinScale, MaxScale},
		"size":             {root.Defs["size"].OneOf[0], 1, MaxFile},
		"count":            {job["count"], 0, MaxFile},
		"files":            {job["files"], 0, MaxJobFiles},
		"num_jobs":         {job["num_jobs"], 0, MaxNumJobs},
		"io_depth":         {job["io_depth"], 0, MaxIODepth},
		"requests":         {job["requests"], 0, MaxRequests},
		"fsync":            {job["fsync"], 0, MaxFsync},
	} {
		if *test.schema.Minimum != test.min || (test.max != 0 && *test.schema.Maximum != test.max) {
			t.Errorf("%s is %v to %v", name, *test.schema.Minimum, test.schema.Maximum)
		}
	}
	if got := *overhead["phases"].MaxItems; got != MaxPhases {
		t.Errorf("%d phases", got)
	}
	for name, test := range map[string]struct {
		got  *int
		want int
	}{
		"volumes": {storage["volumes"].MaxItems, MaxVolumes}, "jobs": {storage["jobs"].MaxItems, MaxJobs},
		"commands": {root.Defs["startup"].Properties["commands"].MaxItems, MaxCommands}, "a command's name": {root.Defs["startCommand"].Properties["name"].MaxLength, MaxCommandName},
		"sections":     {job["options"].MaxItems, MaxSections},
		"a job's name": {job["name"].MaxLength, MaxJobName}, "a section's name": {root.Defs["section"].Properties["name"].MaxLength, MaxJobName},
	} {
		if test.got == nil || *test.got != test.want {
			t.Errorf("%s: %v", name, test.got)
		}
	}
	engines := slices.Sorted(maps.Keys(ioEngines))
	if got := slices.Sorted(slices.Values(job["engine"].Enum)); !slices.Equal(got, engines) {
		t.Errorf("engines %v", got)
	}
	if got := job["volumes"].Items.Enum; !slices.Equal(got, volumeKinds) {
		t.Errorf("kinds of volume %v", got)
	}
	if got := root.Defs["option"].Properties["name"].Pattern; got != optionName.String() {
		t.Errorf("names of options are %s", got)
	}
	if got := strings.Replace(root.Defs["targets"].Items.Pattern, "(=.+)?", "", 1); got != targetName.String() {
		t.Errorf("targets are %s", got)
	}
}

// A default in the schema is what editors show; what counts are the functions.
func TestTheSchemaStatesTheDefaults(t *testing.T) {
	root := readSchema(t)
	lifecycle, overhead, storage := Defaults(), DefaultsOfOverhead(), DefaultsOfStorage()
	var stated []string
	for _, at := range []struct {
		experiment, prefix string
		fields             map[string]*node
		want               Measure
	}{
		{"lifecycle", "", root.Defs["lifecycle"].Properties, Measure{Lifecycle: &lifecycle}},
		{"lifecycle", "limits: {", root.Defs["limits"].Properties, Measure{Lifecycle: &lifecycle}},
		{"overhead", "", root.Defs["overhead"].Properties, Measure{Overhead: &overhead}},
		{"overhead", "limits: {", root.Defs["freeLimits"].Properties, Measure{Overhead: &overhead}},
		{"storage", "", root.Defs["storage"].Properties, Measure{Storage: &storage}},
		{"storage", "limits: {", root.Defs["freeLimits"].Properties, Measure{Storage: &storage}},
	} {
		for name, field := range at.fields {
			if field.Default == nil {
				field = field.resolve(root)
			}
			if field.Default == nil {
				continue
			}
			value, err := json.Marshal(field.Default)
			if err != nil {
				t.Fatal(err)
			}
			text := at.prefix + name + ": " + string(value) + strings.Repeat("}", strings.Count(at.prefix, "{"))
			stated = append(stated, text)
			got, err := Parse("a", []byte("version: 1\nmeasure: ["+at.experiment+": {"+text+"}]"))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if !reflect.DeepEqual(got.Measure[0], at.want) {
				t.Errorf("%s: %s is not the default", at.experiment, text)
			}
		}
	}
	if len(stated) < 40 {
		t.Errorf("only %v", stated)
	}
}

func TestThePatternsOfTheSchemaTakeWhatParseTakes(t *testing.T) {
	root := readSchema(t)
	for name, test := range map[string]struct {
		pattern string
		good    []string
		bad     []string
	}{
		"duration":  {root.Defs["duration"].Pattern, []string{"60s", "10m", "1h30m", "500ms", "1.5h"}, []string{"600", "soon", "-5s", ""}},
		"memory":    {root.Defs["limits"].Properties["memory"].OneOf[1].Pattern, []string{"512Mi", "512MiB", "512M", "512 MB", "1k", "1000000"}, []string{"1.5Gi", "many", ""}},
		"precision": {root.Defs["lifecycle"].Properties["precision"].OneOf[1].Pattern, []string{"5%", "0.5 %", "0.05"}, []string{"high", "-5%", ""}},
		"phases":    {root.Defs["overhead"].Properties["phases"].Items.Pattern, []string{"idle", "10M", "512K", "hold 64MiB", "hold 64 M", "spin 0.5cpu", "spin .5", "spin 2 cpus"}, []string{"", "Idle", "10MiB", "1.5G", "hold", "hold much", "spin", "spin -1"}},
		"cpu":       {root.Defs["cpuLimit"].OneOf[2].Pattern, []string{"1", "0.5", "500m"}, []string{"", "1.5m", "-1", "half"}},
		"volumes":   {root.Defs["storage"].Properties["volumes"].Items.Pattern, []string{"rootfs", "nfs=server:/", "nfs=[fd00::1]:/a/b", "device=/dev/disk/by-id/a"}, []string{"", "nfs", "device=/a", "rootfs=/a", "nfs=a:b"}},
		"jobs":      {root.Defs["storage"].Properties["jobs"].Items.OneOf[0].Pattern, []string{"randread", " rndrw 4k ", "write 1048576"}, []string{"", "randrw", "read 4KiB", "trim"}},
		"scale":     {root.Defs["storage"].Properties["scale"].OneOf[2].Pattern, []string{"0.01", "1%", ".5 %"}, []string{"", "-1", "half", "1e-2"}},
		"size":      {root.Defs["size"].OneOf[1].Pattern, []string{"4k", "1G", "512"}, []string{"", "4KiB", "1.5G", "-1"}},
		"targets":   {root.Defs["targets"].Items.Pattern, []string{"runc", "cri+cri-o/runc", "a=/b c"}, []string{"", "a b", "a=", "/a"}},
	} {
		pattern, err := regexp.Compile(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range test.good {
			if !pattern.MatchString(s) {
				t.Errorf("%s refuses %q", name, s)
			}
		}
		for _, s := range test.bad {
			if pattern.MatchString(s) {
				t.Errorf("%s takes %q", name, s)
			}
		}
	}
}
