package storage

import "github.com/tare-bench/tare/internal/core/figure"

// Quantities are the figures of the instrument. Those of a cell have the labels job, tool,
// rw, bs, volume, cache and target. Ceilings and file systems have those of their rows.
var Quantities = figure.Catalogue{Experiment: Name, Quantities: []figure.Quantity{
	{Name: "bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Headline: true, Labels: "direction", Is: "as the tool says, or by what it moved in its time"},
	{Name: "iops", Unit: figure.PerSecond, Better: figure.More, Headline: true, Labels: "direction", Is: "likewise", More: "; the one of both that the target is compared by has `versus`: IOPS where blocks have at most 64 KiB"},
	{Name: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Labels: "direction, quantile", Is: "of one I/O, each round's own", More: ": `mean`, `p50`, `p95`, `p99`, `p99.9`, and of what was imported `min` and `max`; none of `both` unless the tool says it"},
	{Name: "transferred", Unit: figure.Bytes, Labels: "direction", Is: "that the tool says it moved in a round"},
	{Name: "run-time", Unit: figure.Nanoseconds, Better: figure.Less, Is: "of the job"},
	{Name: "layout-time", Unit: figure.Nanoseconds, Better: figure.Less, Is: "of writing and syncing the job's files before, by the probe in the sandbox, its start included", More: "; where they are written in there (`rootfs`, `tmpfs`)"},
	{Name: "layout-bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Is: "what those files hold over that time", More: ", as `sysbench prepare` has it"},
	{Name: "cpu", Unit: figure.CPUs, Better: figure.Less, Labels: "role", Is: "on average while the job ran", More: ": `workload` inside, `runtime` for everything else of the target"},
	{Name: "cpu-per-byte", Unit: figure.NsPerByte, Better: figure.Less, Is: "both, for what was moved"},
	{Name: "bandwidth-ratio", Unit: figure.Ratio, Better: figure.More, Headline: true, Labels: "direction", Is: "to that of the baseline in the same round, the Hodges–Lehmann estimate over rounds", More: "; `versus` of `bandwidth` or `iops` names it"},
	{Name: "iops-ratio", Unit: figure.Ratio, Better: figure.More, Headline: true, Labels: "direction", Is: "likewise"},
	{Name: "cpu-per-byte-ratio", Unit: figure.Ratio, Better: figure.Less, Is: "likewise"},
	{Name: "reached-device", Unit: figure.Ratio, Better: figure.More, Is: "part of the bytes that the device saw, of all rounds together, in the direction of which it saw less"},
	{Name: "device-bytes", Unit: figure.Bytes, Labels: "direction", Is: "that the device under the volume moved in a round, for whomever"},
	{Name: "ceiling-bandwidth", Unit: figure.BytesPerSec, Better: figure.More, Labels: "volume, device, direction", Is: "of 1 MiB requests on the host, the best of before and after the rounds"},
	{Name: "ceiling-iops", Unit: figure.PerSecond, Better: figure.More, Labels: "volume, device, direction", Is: "of 4 KiB requests at random, likewise"},
	{Name: "file-system-size", Unit: figure.Bytes, Labels: "volume, target, path, type", Is: "of `/`, `/dev/shm` and the volume in the sandbox"},
	{Name: "file-system-free", Unit: figure.Bytes, Labels: "volume, target, path, type", Is: "what is free of it"},
}}
