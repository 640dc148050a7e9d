package plan

import (
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// What a measurement of BPF programs may ask for. The JSON Schema states the same.
const (
	MaxConnections = 100_000
	MaxQPS         = 10_000_000
	MaxInstances   = 256
	MaxServices    = 131_070 // those of 198.18.0.0/15, see package datapath
	MaxHeavy       = 10_000_000
	MaxPoints      = 100
	MinLoad        = 100 * time.Millisecond
	MaxLoad        = 24 * time.Hour
	MaxRequest     = time.Hour

	maxChosen = 100
)

// DatapathReference are tare's own programs.
const DatapathReference = "reference"

// DefaultsOfBPF are the settings of a measurement of BPF programs that says
// nothing: the load of the published report, on tare's own programs.
func DefaultsOfBPF() BPF {
	return BPF{
		Case: record.CaseLoad, Datapath: DatapathReference,
		Connections: []int{100, 500, 1000, 3000}, Duration: 30 * time.Second, Idle: 2 * time.Second, Rounds: 2,
		Instances: 1, Heavy: []int64{0}, Services: []int{1}, Budget: 2 * time.Hour, Timeout: 5 * time.Second,
	}
}

// DefaultsOfQuota are those of the question whose limit pays.
func DefaultsOfQuota() BPF {
	b := DefaultsOfBPF()
	b.Case, b.CPUs, b.Connections, b.Duration, b.Rounds = record.CaseQuota, 1, []int{64}, 3*time.Second, 3
	b.Heavy = []int64{0, 10_000, 65_535, 400_000}
	return b
}

// DefaultsOfMemory are those of the question what services cost.
func DefaultsOfMemory() BPF {
	b := DefaultsOfBPF()
	b.Case, b.Services, b.Connections, b.Duration, b.Rounds = record.CaseMemory, []int{1, 100, 1000}, []int{100}, 3*time.Second, 1
	return b
}

// ParseConnections reads numbers of connections such as "100,500,3000".
func ParseConnections(s string) ([]int, error) {
	return parseCounts(s, "connections", "100,500,3000", func(c []int) []complaint { return countsComplaints("connections", c, MaxConnections) })
}

// ParseServices reads numbers of services such as "1,100,1000".
func ParseServices(s string) ([]int, error) {
	return parseCounts(s, "services", "1,100,1000", func(c []int) []complaint { return countsComplaints("services", c, MaxServices) })
}

// ParseHeavy reads rounds of a loop such as "0,10000,65535".
func ParseHeavy(s string) ([]int64, error) {
	var all []int64
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no number of rounds: write some such as 0,10000,65535", quote(part))
		}
		all = append(all, n)
	}
	if found := heavyComplaints(all); len(found) > 0 {
		return nil, found[0]
	}
	return all, nil
}

// ParseCPUs reads a limit: a number of CPUs ("1", "0.5"), milli-CPUs ("250m"), or
// several clients that share it, each with its part ("4x250m").
func ParseCPUs(s string) (cpus float64, instances int, err error) {
	instances = 1
	each := strings.TrimSpace(s)
	if count, rest, several := strings.Cut(each, "x"); several {
		if instances, err = strconv.Atoi(strings.TrimSpace(count)); err != nil || instances < 1 || instances > MaxInstances {
			return 0, 0, fmt.Errorf("%s: %s is not a number of clients from 1 to %d", quote(s), quote(count), MaxInstances)
		}
		each = rest
	}
	milli, err := ParseMilliCPU(strings.TrimSpace(each))
	if err != nil {
		return 0, 0, err
	}
	return float64(milli) / 1000 * float64(instances), instances, nil
}

// Validate says everything that is wrong with the measurement.
func (b *BPF) Validate() error { return joined(b.complaints()) }

func (b *BPF) complaints() []complaint {
	return slices.Concat(b.caseComplaints(), b.choiceComplaints(), b.loadComplaints(),
		countsComplaints("services", b.Services, MaxServices), heavyComplaints(b.Heavy), roundsComplaints(b.Rounds), timesComplaints(b.Budget, b.Timeout))
}

func (b *BPF) caseComplaints() []complaint {
	var all []complaint
	if !slices.Contains([]string{record.CaseLoad, record.CaseQuota, record.CaseMemory}, b.Case) {
		all = append(all, complain("case", "%s is not known: write load, quota or memory", quote(b.Case)))
	}
	switch {
	case b.Datapath != "" && b.Datapath != DatapathReference:
		all = append(all, complain("datapath", "%s is not known: write reference, or leave it empty and choose programs", quote(b.Datapath)))
	case b.Datapath == "" && !b.chosen():
		all = append(all, complain("datapath", "no programs are chosen: write reference, or kmesh, names, pins, cgroups or owners"))
	case b.Datapath != "" && b.chosen():
		all = append(all, complain("datapath", "tare's own programs are measured alone: leave out kmesh, names, pins, cgroups and owners"))
	}
	if b.Datapath == "" && !slices.Equal(b.Heavy, []int64{0}) {
		all = append(all, complain("heavy", "only tare's own programs can be made heavier: write datapath: reference"))
	}
	if b.Datapath == "" && !slices.Equal(b.Services, []int{1}) {
		all = append(all, complain("services", "they are in the map of tare's own programs, and nobody else's are made: leave them out, or write datapath: reference"))
	}
	if b.Datapath == DatapathReference && strings.HasPrefix(strings.ToLower(b.URL), "https:") {
		all = append(all, complain("url", "tare's own programs lead services to it, whose addresses no certificate has: write an http address, or choose programs"))
	}
	if b.Timeout > MaxRequest {
		all = append(all, complain("timeout", "%v is not a time for one request: up to %v is allowed", b.Timeout, MaxRequest))
	}
	if b.Datapath == "" && b.URL == "" {
		all = append(all, complain("url", "programs that are loaded already see the load to a server of theirs only: write its address"))
	}
	if b.Case == record.CaseQuota && b.CPUs == 0 {
		all = append(all, complain("cpus", "the question is whose limit pays: write one, such as 1"))
	}
	return all
}

func (b *BPF) chosen() bool {
	return b.Kmesh || len(b.Names) > 0 || len(b.Pins) > 0 || len(b.Cgroups) > 0 || len(b.Owners) > 0
}

func (b *BPF) choiceComplaints() []complaint {
	var all []complaint
	for field, list := range map[string][]string{"names": b.Names, "pins": b.Pins, "cgroups": b.Cgroups} {
		if len(list) > maxChosen {
			all = append(all, complain(field, "%d are too many: at most %d are allowed", len(list), maxChosen))
		}
		for i, s := range list {
			switch _, err := path.Match(s, ""); {
			case s == "" || len(s) > maxSource || strings.ContainsRune(s, 0):
				all = append(all, complain(field, "%s is not a name", quote(s)).at(i))
			case field == "names" && err != nil:
				all = append(all, complain(field, "%s is not a pattern: write a name with * and ?, such as cgroup_*", quote(s)).at(i))
			case field != "names" && !strings.HasPrefix(s, "/"):
				all = append(all, complain(field, "%s is not a path: write it from the root", quote(s)).at(i))
			}
		}
	}
	for i, pid := range b.Owners {
		if pid < 1 || pid > 1<<22 {
			all = append(all, complain("owners", "%d is not a pid", pid).at(i))
		}
	}
	return all
}

func (b *BPF) loadComplaints() []complaint {
	all := countsComplaints("connections", b.Connections, MaxConnections)
	if b.URL != "" {
		u, err := url.Parse(b.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(b.URL) > maxSource {
			all = append(all, complain("url", "%s is not an address: write one such as http://10.0.0.1:8080/", quote(b.URL)))
		}
	}
	if b.QPS < 0 || b.QPS > MaxQPS || math.IsNaN(b.QPS) {
		all = append(all, complain("qps", "%g is not a rate: from 0 (as many as it can) to %d are allowed", b.QPS, MaxQPS))
	}
	if b.Duration < MinLoad || b.Duration > MaxLoad {
		all = append(all, complain("duration", "%v is not a load: from %v to %v are allowed", b.Duration, MinLoad, MaxLoad))
	}
	if b.Idle < MinLoad || b.Idle > MaxLoad {
		all = append(all, complain("idle", "%v is not a time to look at: from %v to %v are allowed", b.Idle, MinLoad, MaxLoad))
	}
	if b.CPUs != 0 && (b.CPUs < MinCPU || b.CPUs > MaxCPU || math.IsNaN(b.CPUs)) {
		all = append(all, complain("cpus", "%g is not a limit: from %g to %d are allowed", b.CPUs, MinCPU, int(MaxCPU)))
	}
	if b.Instances < 1 || b.Instances > MaxInstances {
		all = append(all, complain("instances", "%d is not a number of clients: from 1 to %d are allowed", b.Instances, MaxInstances))
	}
	for i, n := range b.Connections {
		if n < b.Instances {
			all = append(all, complain("connections", "%d are fewer than the %d clients that share them", n, b.Instances).at(i))
		}
	}
	return all
}

func heavyComplaints(rounds []int64) []complaint {
	if len(rounds) == 0 || len(rounds) > MaxPoints {
		return []complaint{complain("heavy", "%d weights: from 1 to %d are allowed, such as 0,10000,65535", len(rounds), MaxPoints)}
	}
	var all []complaint
	for i, n := range rounds {
		if n < 0 || n > MaxHeavy {
			all = append(all, complain("heavy", "%d is not a number of rounds: from 0 to %d are allowed", n, MaxHeavy).at(i))
		}
		if slices.Contains(rounds[:i], n) {
			all = append(all, complain("heavy", "%d is there twice", n).at(i))
		}
	}
	return all
}
