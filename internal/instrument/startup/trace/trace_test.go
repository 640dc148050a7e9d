package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

const ms = int64(1e6)

// proc is a process from one ms of a start to another, executed half a ms after
// its birth; to is 0 where it was still there.
func proc(pid, parent int, kind, name string, from, to int64) record.StartProcess {
	program, verb, _ := strings.Cut(name, " ")
	p := record.StartProcess{Pid: pid, Parent: parent, Kind: kind, Name: name, Program: program, Verb: verb, Born: from * ms, Exec: from*ms + ms/2, CPU: -1}
	if to != 0 {
		p.Ended = to * ms
	}
	return p
}

// start is a live one that began at 0; its processes used no CPU time.
func start(ended int64, all ...record.StartProcess) *record.Start {
	return &record.Start{Method: record.MethodBPF, Ended: ended * ms, Processes: all, Busy: []record.BusyAt{{At: 0}, {At: ended * ms}}}
}

// line writes parts as "docker 0-10, runc create 10-40".
func line(parts []Part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s %g-%g", p.Name, float64(p.Began)/1e6, float64(p.Ended)/1e6))
	}
	return strings.Join(words, ", ")
}

// dockerRun is a start in which all kinds have a part.
func dockerRun() *record.Start {
	s := start(400,
		proc(100, 0, record.KindDaemon, "dockerd", 0, 0),
		proc(50, 0, record.KindClient, "docker", 1, 400),
		proc(60, 100, record.KindHelper, "docker-proxy", 10, 390),
		proc(70, 100, record.KindHelper, "shim start", 20, 40),
		proc(71, 70, record.KindShim, "containerd-shim-runc-v2", 30, 0),
		proc(80, 71, record.KindCall, "runc create", 50, 100),
		proc(81, 80, record.KindInit, "runc init", 60, 90),
		proc(82, 81, record.KindInit, "runc init", 70, 150),
		proc(83, 82, record.KindHelper, "newuidmap", 75, 80),
		proc(90, 100, record.KindCNI, "bridge", 110, 120),
		proc(91, 90, record.KindCNI, "host-local", 112, 115),
		proc(92, 71, record.KindCall, "runc start", 140, 160),
		proc(82, 81, record.KindWorkload, "sh", 150, 155),
		proc(82, 81, record.KindWorkload, "sleep", 155, 300),
		proc(93, 71, record.KindCall, "runc delete", 310, 330),
	)
	s.Processes[12].Exec, s.Processes[13].Exec = 150*ms, 155*ms
	s.First = 150 * ms
	return s
}

func TestTheTimeOfAStartIsDividedByWhatIsWaitedFor(t *testing.T) {
	run := start(100,
		proc(50, 0, record.KindCall, "runc run", 0, 100),
		proc(51, 50, record.KindInit, "runc init", 10, 30),
		proc(51, 50, record.KindWorkload, "true", 30, 80))
	run.Processes[2].Exec, run.First = 30*ms, 31*ms
	two := start(100,
		proc(1, 0, record.KindCall, "runc start", 20, 30), proc(2, 0, record.KindWorkload, "a", 25, 40),
		proc(3, 0, record.KindWorkload, "b", 60, 80), proc(4, 3, record.KindWorkload, "child", 65, 0), proc(5, 0, record.KindWorkload, "c", 70, 0))
	two.Processes[1].Exec, two.Processes[2].Exec, two.First = 25*ms, 60*ms, 25*ms
	for name, c := range map[string]struct {
		start        *record.Start
		parts, calls string
	}{
		"all kinds of process": {dockerRun(),
			"docker 0-20, shim start 20-40, docker 40-50, runc create 50-60, runc init 60-75, newuidmap 75-80, runc init 80-100, docker 100-110, bridge 110-112, host-local 112-115, bridge 115-120, docker 120-140, runc start 140-160, sh 160-300, docker 300-310, runc delete 310-330, docker 330-400",
			"docker 0-50, runc create 50-100, docker 100-140, runc start 140-160, sh 160-300, docker 300-310, runc delete 310-330, docker 330-400"},
		"a run in the foreground leaves the workload's time to it": {run,
			"runc run 0-10, runc init 10-30, runc run 30-31, true 31-80, runc run 80-100", "runc run 0-100"},
		"two containers one after the other": {two,
			"docker 0-20, runc start 20-30, a 30-40, docker 40-60, b 60-80, docker 80-100", "docker 0-20, runc start 20-30, a 30-40, docker 40-60, b 60-80, docker 80-100"},
		"no processes at all": {start(100), "docker 0-100", "docker 0-100"},
		"calls of a pod that overlap are not counted twice": {start(100,
			proc(1, 0, record.KindCall, "runc create", 10, 50),
			proc(2, 0, record.KindCall, "runc state", 20, 30),
			proc(3, 0, record.KindCall, "runc start", 40, 70)),
			"docker 0-10, runc create 10-20, runc state 20-30, runc create 30-40, runc start 40-70, docker 70-100",
			"docker 0-10, runc create 10-20, runc state 20-30, runc create 30-40, runc start 40-70, docker 70-100"},
		"what outlives the start": {start(100,
			proc(1, 0, record.KindShim, "containerd-shim-runc-v2", 10, 500),
			proc(2, 1, record.KindHelper, "pinns", 20, 500),
			proc(3, 1, record.KindCall, "runc create", 30, 500),
			proc(4, 1, record.KindCNI, "bridge", 600, 700)), "docker 0-30, runc create 30-100", "docker 0-30, runc create 30-100"},
		"what was there before":                       {start(100, proc(3, 1, record.KindCall, "runc create", -50, 20)), "runc create 0-20, docker 20-100", "runc create 0-20, docker 20-100"},
		"what ended before it was born takes no time": {start(100, proc(3, 1, record.KindCall, "runc create", 50, 20)), "docker 0-100", "docker 0-100"},
		"a start without an end has no parts":         {&record.Start{Began: 5, Processes: dockerRun().Processes}, "", ""},
		"notes": {&record.Start{Method: record.MethodNotes, Ended: 100 * ms, Spans: []record.Span{
			{Name: "create", Kind: record.KindCall, Began: 0, Ended: 30 * ms},
			{Name: "docker", Kind: record.KindEngine, Began: 30 * ms, Ended: 40 * ms},
			{Name: "state", Kind: record.KindCall, Began: 40 * ms, Ended: 50 * ms}}},
			"create 0-30, docker 30-40, state 40-50, docker 50-100", "create 0-30, docker 30-40, state 40-50, docker 50-100"},
		"logs": {&record.Start{Method: record.MethodLogs, Ended: 100 * ms, Spans: []record.Span{
			{Name: "create", Kind: record.KindCall, Began: 10 * ms, Ended: 80 * ms},
			{Name: "VM", Kind: record.KindPhase, Began: 20 * ms, Ended: 60 * ms},
			{Name: "boot", Kind: record.KindGuest, Began: 30 * ms, Ended: 50 * ms},
			{Name: "backwards", Kind: record.KindGuest, Began: 35 * ms, Ended: 34 * ms}}},
			"docker 0-10, create 10-20, VM 20-30, boot 30-50, VM 50-60, create 60-80, docker 80-100", "docker 0-10, create 10-80, docker 80-100"},
		"a phase and a call that begin and end together, of which the first has all of it": {&record.Start{Method: record.MethodLogs, Ended: 100 * ms, Spans: []record.Span{
			{Name: "VM", Kind: record.KindPhase, Began: 10 * ms, Ended: 90 * ms}, {Name: "create", Kind: record.KindCall, Began: 10 * ms, Ended: 90 * ms},
			{Name: "kernel", Kind: record.KindGuest, Began: 20 * ms, Ended: 30 * ms}, {Name: "PullImage", Kind: record.KindEngine, Began: 25 * ms, Ended: 95 * ms}}},
			"docker 0-10, VM 10-20, kernel 20-30, VM 30-90, PullImage 90-95, docker 95-100", "docker 0-10, create 10-90, PullImage 90-95, docker 95-100"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := line(Parts(c.start, "docker")); got != c.parts {
				t.Errorf("parts\n\t%s\nwant\n\t%s", got, c.parts)
			}
			if got := line(Calls(c.start, "docker")); got != c.calls {
				t.Errorf("calls\n\t%s\nwant\n\t%s", got, c.calls)
			}
		})
	}
}

func TestAPartHasTheCPUTimeThatWasUsedMeanwhile(t *testing.T) {
	s := start(100, proc(1, 0, record.KindCall, "runc create", 20, 60))
	s.Busy = []record.BusyAt{{At: 10 * ms, CPU: 5}, {At: 20 * ms, CPU: 100}, {At: 60 * ms, CPU: 1100}, {At: 110 * ms, CPU: 1600}}
	var got []int64
	for _, p := range Parts(s, "docker") {
		got = append(got, p.CPU)
	}
	if want := []int64{95, 1000, 400}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s.Busy = nil
	if p := Parts(s, "docker")[1]; p.CPU != -1 {
		t.Errorf("%d ns of CPU from nowhere", p.CPU)
	}
}

func TestRowsAreATreeOfWhoForkedWhom(t *testing.T) {
	s := dockerRun()
	// Its pid is used again, by the child of somebody else.
	s.Processes = append(s.Processes, proc(80, 93, record.KindOther, "late", 315, 320), proc(5, 80, record.KindOther, "of late", 316, 0))
	var got []string
	for _, r := range Rows(s) {
		open := ""
		if r.Open {
			open = " open"
		}
		got = append(got, strings.Repeat(" ", r.Depth)+r.Name+open)
	}
	want := []string{
		"dockerd open", " docker-proxy", " shim start", "  containerd-shim-runc-v2 open", "   runc create", "    runc init", "     runc init",
		"      newuidmap", "     sh", "     sleep", "   runc start", "   runc delete", "    late", "     of late open", " bridge", "  host-local", "docker",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	r := Rows(s)[4]
	if r.Began != 50*ms || r.Ended != 100*ms || r.First != 50*ms+ms/2 {
		t.Errorf("%+v", r)
	}
	logs := &record.Start{Method: record.MethodLogs, Spans: []record.Span{
		{Name: "inner", Began: 20, Ended: 30}, {Name: "outer", Began: 10, Ended: 50}, {Name: "after", Began: 30, Ended: 40}, {Name: "next", Began: 50, Ended: 60}, {Name: "point", Began: 55, Ended: 50}}}
	got = nil
	for _, r := range Rows(logs) {
		got = append(got, fmt.Sprint(r.Depth, r.Name))
	}
	if want := []string{"0outer", "1inner", "1after", "0next", "1point"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheLongestGapIsBlamedByName(t *testing.T) {
	engine := func() *record.Start {
		return start(700, proc(50, 0, record.KindClient, "docker", 0, 700), proc(1, 0, record.KindCall, "runc create", 50, 100), proc(2, 0, record.KindCall, "runc start", 601, 630))
	}
	client := start(700, proc(50, 0, record.KindClient, "sh", 0, 700), proc(51, 50, record.KindClient, "sleep", 10, 520), proc(52, 50, record.KindCall, "runc start", 530, 600))
	workload := start(1100, proc(50, 0, record.KindCall, "runc run", 0, 1100), proc(51, 50, record.KindWorkload, "sleep", 20, 1030))
	workload.First = workload.Processes[1].Exec
	stamped := start(1100, workload.Processes...)
	stamped.First = workload.First + 2*ms
	attached := start(1100, proc(50, 0, record.KindClient, "docker", 0, 1100), proc(60, 0, record.KindShim, "containerd-shim-runc-v2", 5, 0),
		proc(61, 60, record.KindCall, "runc start", 10, 25), proc(62, 60, record.KindWorkload, "sleep", 20, 1030))
	attached.First = attached.Processes[3].Exec
	hook := start(900, proc(1, 0, record.KindCall, "crun create", 10, 880), proc(2, 1, record.KindInit, "crun init", 20, 0), proc(3, 1, record.KindOther, "hook", 30, 700))
	init := start(900, proc(1, 0, record.KindCall, "runc create", 10, 880), proc(2, 1, record.KindInit, "runc init", 20, 0))
	pod := start(900,
		proc(1, 0, record.KindCall, "runc create", 10, 880), proc(2, 0, record.KindCall, "runc create", 20, 890), proc(3, 2, record.KindOther, "sleep", 30, 700))
	for name, c := range map[string]struct {
		start             *record.Start
		in, after, before string
	}{
		"a runtime that sleeps 1 s in create": {
			start(1300, proc(1, 0, record.KindCall, "fake-runc create", 50, 1200), proc(2, 1, record.KindOther, "sleep", 60, 1063), proc(3, 1, record.KindInit, "runc init", 1070, 1150)),
			"fake-runc create (sleep)", "sleep executed", "sleep ended"},
		"one that does it without a child": {
			start(1300, proc(1, 0, record.KindCall, "fake-runc create", 50, 1053), proc(2, 0, record.KindCall, "runc start", 1070, 1150)),
			"fake-runc create", "fake-runc create executed", "fake-runc create ended"},
		"a network plugin that sleeps 300 ms": {
			start(500, proc(1, 0, record.KindCNI, "bridge", 50, 400), proc(2, 1, record.KindOther, "sleep", 60, 362)),
			"bridge (sleep)", "sleep executed", "sleep ended"},
		"an engine that waits 500 ms between two calls": {engine(), "docker", "runc create ended", "runc start forked"},
		"a command before the engine's":                 {client, "docker (sleep)", "sleep executed", "sleep ended"},
		"a workload in the foreground":                  {workload, "workload sleep", "sleep executed", "sleep ended"},
		"one that says itself when it began":            {stamped, "workload sleep", "the first instruction", "sleep ended"},
		"one that an engine waits for":                  {attached, "workload sleep", "runc start ended", "sleep ended"},
		"a hook":                                        {hook, "crun create (hook)", "hook executed", "hook ended"},
		"an init":                                       {init, "runc create (runc init)", "runc init executed", "runc create ended"},
		"the call that a sleeper is in, of two":         {pod, "runc create (sleep)", "sleep executed", "sleep ended"},
		"nobody that was seen":                          {start(1000), "docker", "the call was made", "it returned"},
		"who ended before it was born, of nothing":      {start(510, proc(1, 0, record.KindCall, "runc create", 505, 20)), "docker", "the call was made", "runc create ended"},
	} {
		t.Run(name, func(t *testing.T) {
			gaps := Gaps(c.start, "docker", 3)
			if len(gaps) == 0 {
				t.Fatal("no gap")
			}
			if g := gaps[0]; g.In != c.in || g.After != c.after || g.Before != c.before || g.CPU != 0 {
				t.Errorf("%+v", g)
			}
		})
	}
}

func TestGapsOfLogsAreThoseThatWereRecorded(t *testing.T) {
	s := &record.Start{Method: record.MethodLogs, Ended: 9e9, Gaps: []record.Gap{
		{Began: 0, Ended: 1e6, In: "kata", CPU: -1}, {Began: 1e9, Ended: 2001846000, In: "kata_agent", CPU: -1, After: "New client", Before: "sending request"}}}
	got := Gaps(s, "kata", 1)
	if len(got) != 1 || got[0].In != "kata_agent" {
		t.Errorf("%+v", got)
	}
	for _, method := range []string{record.MethodNotes, record.MethodNone} {
		if got := Gaps(&record.Start{Method: method, Ended: 9e9}, "kata", 5); len(got) != 0 {
			t.Errorf("%s: %+v", method, got)
		}
	}
}
