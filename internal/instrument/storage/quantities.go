package storage

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities are the figures of the instrument. Those of a cell have the labels job, tool,
// rw, bs, volume, cache and target. Ceilings and file systems have those of their rows.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Headline: true, Labels: "direction", Is: "as the tool reports it, or bytes moved divided by its run time"},
	{Name: "iops", Unit: figure.PerSecond, Better: figure.More, Headline: true, Labels: "direction", Is: "likewise", More: "; the one of both that the target is compared by has `versus`: IOPS where blocks have at most 64 KiB"},
	{Name: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "direction, quantile", Is: "of one I/O, per round", More: ": `mean`, `p50`, `p95`, `p99`, `p99.9`, for imported results also `min` and `max`; for `both` only if the tool reports it"},
	{Name: "transferred", Unit: figure.Bytes, Labels: "direction", Is: "moved in a round, as the tool reports it"},
	{Name: "run-time", Unit: figure.Nanoseconds, Better: figure.Less, Is: "of the job"},
	{Name: "layout-time", Unit: figure.Nanoseconds, Better: figure.Less, Is: "of writing and syncing the job's files in advance, by the probe in the sandbox, including its start", More: "; where they are written in there (`rootfs`, `tmpfs`)"},
	{Name: "layout-bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Is: "size of those files divided by that time", More: ", as `sysbench prepare` has it"},
	{Name: "cpu", Unit: figure.CPUs, Better: figure.Less, Labels: "role", Is: "on average while the job ran", More: ": `workload` inside, `runtime` for everything else of the target"},
	{Name: "cpu-per-byte", Unit: figure.NsPerByte, Better: figure.Less, Is: "both, per byte moved"},
	{Name: "bandwidth-ratio", Unit: figure.Ratio, Better: figure.More, Headline: true, Labels: "direction", Is: "to that of the baseline in the same round, the Hodges–Lehmann estimate over rounds", More: "; `versus` of `bandwidth` or `iops` names it"},
	{Name: "iops-ratio", Unit: figure.Ratio, Better: figure.More, Headline: true, Labels: "direction", Is: "likewise"},
	{Name: "cpu-per-byte-ratio", Unit: figure.Ratio, Better: figure.Less, Is: "likewise"},
	{Name: "reached-device", Unit: figure.Ratio, Better: figure.More, Is: "share of the bytes that the device saw, over all rounds, in the direction with the smaller share"},
	{Name: "device-bytes", Unit: figure.Bytes, Labels: "direction", Is: "moved by the device under the volume in a round, for all users"},
	{Name: "ceiling-bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Labels: "volume, device, direction", Is: "of 1 MiB requests on the host, the best of before and after the rounds"},
	{Name: "ceiling-iops", Unit: figure.PerSecond, Better: figure.More, Labels: "volume, device, direction", Is: "of 4 KiB requests at random, likewise"},
	{Name: "file-system-size", Unit: figure.Bytes, Labels: "volume, target, path, type", Is: "of `/`, `/dev/shm` and the volume in the sandbox"},
	{Name: "file-system-free", Unit: figure.Bytes, Labels: "volume, target, path, type", Is: "free part of it"},
}}
