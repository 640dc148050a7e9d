package storage

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// resolved returns the job as it runs, see [Options.Resolved].
func (j *Job) resolved(scale float64) (Job, error) {
	scale = cmp.Or(scale, 1)
	switch {
	case len(j.Options) > 0 && scale != 1:
		return Job{}, errors.New("a job file is not scaled: change its sizes and times, or omit the scale")
	case len(j.Options) > 0:
		return *j, nil
	}
	r := *j
	r.Files, r.NumJobs = max(r.Files, 1), max(r.NumJobs, 1)
	files := int64(r.Files)
	blocks := max(scaled(j.Bytes(), scale)/files/j.BS, 1)
	if scale != 1 { // every thread needs a block
		blocks = max(blocks, (int64(r.NumJobs)+files-1)/files)
	}
	r.FileSize = blocks * j.BS
	if r.FileSize > MaxFile/files {
		return Job{}, fmt.Errorf("with a scale of %g its files exceed 16T: use a smaller scale", scale)
	}
	r.Size = r.FileSize * files
	if r.Runtime > 0 {
		r.Runtime = min(max(time.Duration(scaled(int64(r.Runtime), scale)), MinRuntime), MaxRuntime)
	}
	if r.Requests > 0 {
		r.Requests = min(max(scaled(r.Requests, scale), 1), MaxRequests)
	}
	switch r.Tool {
	case ToolFio:
		r.IODepth, r.Engine = max(r.IODepth, 1), r.engine()
	case ToolDD:
		r.Count = blocks
	}
	return r, nil
}

// scaled multiplies n by scale. It is exact for scale 1: a float64 holds only 53 bits.
func scaled(n int64, scale float64) int64 {
	if scale == 1 {
		return n
	}
	// Scaled values are below 2^52, and the scale is at most 1000.
	return int64(float64(n) * scale)
}
