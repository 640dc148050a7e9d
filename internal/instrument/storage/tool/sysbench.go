package tool

import (
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// sysbenchModes are its names for what a job does. Files are there already, so
// that a sequential write is one over what they hold, as fio's.
var sysbenchModes = map[string]string{
	plan.RWRead: "seqrd", plan.RWWrite: "seqrewr",
	plan.RWRandRead: "rndrd", plan.RWRandWrite: "rndwr", plan.RWRandRW: "rndrw",
}

// sysbenchCommand is for sysbench 1.0. Its files lie in its working folder, which
// it has no option for: the probe goes there first, and becomes it.
func sysbenchCommand(j plan.Job, at Place) ([]string, error) {
	files, err := sysbenchFiles(j, at)
	if err != nil {
		return nil, err
	}
	limit := shorter(j.Runtime, at.Limit)
	if limit <= 0 && j.Requests <= 0 {
		return nil, fmt.Errorf("job %q would never end: it has no requests, no runtime and no limit", j.Name)
	}
	args := []string{at.Program, "fileio",
		option("file-total-size", files[0].Size*int64(len(files))), option("file-num", len(files)),
		option("file-test-mode", sysbenchModes[j.RW]), option("file-block-size", j.BS),
		option("threads", max(j.NumJobs, 1)), option("events", max(j.Requests, 0)), option("time", wholeSeconds(limit)),
		option("file-fsync-freq", j.Fsync), "--percentile=99", "--rand-seed=1", // the same requests everywhere
	}
	if at.Direct {
		args = append(args, "--file-extra-flags=direct")
	}
	return probe.InArgs(at.Dir, append(args, "run")...), nil
}

// wholeSeconds rounds up: sysbench has no parts of them, and 0 is for ever.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// sysbenchFiles are those that its "prepare" would make, of whole blocks: with
// others its last requests go beyond the end of a file.
func sysbenchFiles(j plan.Job, at Place) ([]File, error) {
	if err := at.check(); err != nil {
		return nil, err
	}
	size, err := fileSize(j)
	switch {
	case err != nil:
		return nil, err
	case sysbenchModes[j.RW] == "":
		return nil, fmt.Errorf("job %q: sysbench has no %q", j.Name, j.RW)
	case at.Device != "":
		return nil, fmt.Errorf("job %q: sysbench makes files and has no use for a device", j.Name)
	}
	all := make([]File, max(j.Files, 1))
	for i := range all {
		all[i] = File{Path: path.Join(at.Dir, "test_file."+strconv.Itoa(i)), Size: size}
	}
	return all, nil
}

func parseSysbenchRun(e subject.Executed) (record.Claim, string, error) {
	c, _, version, err := ParseSysbench(e.Output)
	if version != "" {
		version = "sysbench " + version
	}
	return c, version, err
}
