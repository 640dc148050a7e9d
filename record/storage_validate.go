package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How much storage can have done. Beyond it a figure is of another unit.
const (
	maxRate    = 1e18 // bytes/s and 1/s: a PB/s is a thousandth of it
	maxSeconds = 366 * 86400
	maxCommand = 1 << 16 // bytes of a command line
	// maxPressure is how large a share of a cell's time can be: a job of a few
	// milliseconds is no longer than the readings before and after it.
	maxPressure = 2
)

// Validate says whether the cell can be true.
func (c *Cell) Validate() error {
	switch {
	case c.Target == "":
		return errors.New("a cell without a target")
	case c.Job == "":
		return errors.New("a cell without a job")
	case c.Tool == "":
		return errors.New("a cell without a tool")
	case c.Dropped != "" && c.Dropped != "node" && c.Dropped != "files":
		return fmt.Errorf("dropped %.40q: what was dropped are the caches of the node, or those of its files", c.Dropped)
	case c.Failure != nil && c.Failure.Kind == "":
		return errors.New("a failure without a kind")
	case c.Failure == nil && !c.Claim.hasFigures():
		return errors.New("a claim without figures, and no failure that would explain it")
	}
	if err := allNotLonger(text{"target", c.Target, maxLabel}, text{"job", c.Job, maxLabel}, text{"tool", c.Tool, maxLabel},
		text{"version", c.Version, maxLabel}, text{"command", c.Command, maxCommand}, text{"source", c.Source, maxPath + maxLabel}); err != nil {
		return err
	}
	if err := notNegative(amount{"round", int64(c.Round)}, amount{"order", int64(c.Order)}); err != nil {
		return err
	}
	for _, validate := range []func() error{c.validateWhere, c.validateTimes, c.Layout.validate, c.Claim.validate, c.Seen.validate} {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

// validateWhere lets an imported cell leave open where it was.
func (c *Cell) validateWhere() error {
	imported := c.Source != ""
	if c.Volume != "" || !imported {
		if err := validateVolume(c.Volume); err != nil {
			return err
		}
	}
	if c.Cache != CacheDirect && c.Cache != CacheBuffered && (c.Cache != "" || !imported) {
		return fmt.Errorf("cache %.40q: a cell is %s or %s", c.Cache, CacheDirect, CacheBuffered)
	}
	if imported && (c.Seen != nil || c.Layout != nil || c.Dropped != "" || c.Quiet || c.Begun != 0 || c.Ended != 0 || c.SetUp != 0) {
		return fmt.Errorf("a cell that was imported from %.100q has nothing but the claim: what was seen or done is of a run", c.Source)
	}
	return nil
}

// validateVolume takes a kind, and one with its source as a plan has it.
func validateVolume(volume string) error {
	kind, _, _ := strings.Cut(volume, "=")
	if !slices.Contains([]string{VolumeRootfs, VolumeBind, VolumeTmpfs, VolumeNFS, VolumeDevice}, kind) {
		return fmt.Errorf("volume %.40q: it is one of %s, %s, %s, %s and %s", volume, VolumeRootfs, VolumeBind, VolumeTmpfs, VolumeNFS, VolumeDevice)
	}
	return notLonger("volume", volume, maxPath+maxLabel)
}

func (c *Cell) validateTimes() error {
	if err := spans(amount{"set_up", c.SetUp}); err != nil {
		return err
	}
	if err := notNegative(amount{"begun", c.Begun}, amount{"ended", c.Ended}); err != nil {
		return err
	}
	switch {
	case c.Source == "" && c.Failure == nil && (c.Begun == 0 || c.Ended == 0):
		return errors.New("no begin or no end, and no failure that would explain it")
	case c.Ended != 0 && c.Ended < c.Begun:
		return fmt.Errorf("ended %d is before begun %d", c.Ended, c.Begun)
	case c.Ended != 0 && c.Ended-c.Begun > int64(longestSpan):
		return fmt.Errorf("ended %d is more than a year after begun %d: it is of another clock", c.Ended, c.Begun)
	}
	return nil
}

func (l *Layout) validate() error {
	if l == nil {
		return nil
	}
	return within("layout", cmp.Or(notNegative(amount{"files", int64(l.Files)}), bytesOf(amount{"bytes", l.Bytes}), spans(amount{"took", l.Took})))
}

// hasFigures is false where all that a claim says is how long it took.
func (c *Claim) hasFigures() bool {
	said := func(f *Flow) bool { return f.Bytes != 0 || f.IOs != 0 || f.Bandwidth != 0 || f.IOPS != 0 }
	return c != nil && (said(&c.Read) || said(&c.Write))
}

func (c *Claim) validate() error {
	if c == nil {
		return nil
	}
	return within("claim", cmp.Or(
		within("read", c.Read.validate()), within("write", c.Write.validate()), within("latency", c.Latency.validate()),
		figures(figure{"seconds", c.Seconds, maxSeconds}),
	))
}

func (f *Flow) validate() error {
	return cmp.Or(
		bytesOf(amount{"bytes", f.Bytes}), notNegative(amount{"ios", f.IOs}),
		figures(figure{"bandwidth", f.Bandwidth, maxRate}, figure{"iops", f.IOPS, maxRate}),
		within("latency", f.Latency.validate()),
	)
}

// validate does not hold a quantile against the largest: tools take it from the
// middle of a bin, which may lie above all that is in the bin.
func (l *Latency) validate() error {
	if err := spans(amount{"min", l.Min}, amount{"mean", l.Mean}, amount{"p50", l.P50}, amount{"p95", l.P95}, amount{"p99", l.P99}, amount{"p999", l.P999}, amount{"max", l.Max}); err != nil {
		return err
	}
	before := amount{}
	for _, q := range []amount{{"p50", l.P50}, {"p95", l.P95}, {"p99", l.P99}, {"p999", l.P999}} {
		if q.value == 0 { // not said
			continue
		}
		if q.value < before.value {
			return fmt.Errorf("%s %d is below %s %d", q.name, q.value, before.name, before.value)
		}
		before = q
	}
	return nil
}

func (s *Seen) validate() error {
	if s == nil {
		return nil
	}
	return within("seen", cmp.Or(
		spans(amount{"took", s.Took}),
		within("device", s.Device.validate()), within("disks", s.Disks.validate()),
		s.Group.validate(), s.Outside.validate(), s.validateNode(), s.validateCPU(), s.Problems.validate(),
	))
}

func (s *Seen) validateNode() error {
	switch {
	case s.Flushed < -1 || s.Flushed > maxPSS:
		return fmt.Errorf("flushed is %d and has to be an amount, or -1 where nothing was synced", s.Flushed)
	case s.Cached < -maxPSS || s.Cached > maxPSS:
		return fmt.Errorf("cached is %d: memory does not change by more than %d", s.Cached, int64(maxPSS))
	case s.Throttled < 0 || s.Throttled > maxCPU:
		return fmt.Errorf("throttled is %d and has to be from 0 to %d", s.Throttled, maxCPU)
	case s.OwnCPU < 0 || s.OwnCPU > maxCPU:
		return fmt.Errorf("own_cpu is %d and has to be from 0 to %d", s.OwnCPU, maxCPU)
	}
	return figures(figure{"psi_cpu", s.PSICPU, maxPressure}, figure{"psi_memory", s.PSIMemory, maxPressure},
		figure{"psi_io", s.PSIIO, maxPressure}, figure{"busy", s.Busy, maxSpin}, figure{"steal", s.Steal, maxSpin})
}

func (s *Seen) validateCPU() error {
	if len(s.CPU) > maxRoles {
		return fmt.Errorf("%d roles: a cell has at most %d", len(s.CPU), maxRoles)
	}
	for i, t := range s.CPU {
		switch {
		case t.Role == "":
			return errors.New("a use of the CPU without a role")
		case slices.ContainsFunc(s.CPU[:i], func(before RoleTime) bool { return before.Role == t.Role }):
			return fmt.Errorf("role %.40s is there twice", t.Role)
		case t.NS < 0 || t.NS > maxCPU:
			return fmt.Errorf("role %.40s: ns is %d and has to be from 0 to %d", t.Role, t.NS, maxCPU)
		}
		if err := notLonger("a role", string(t.Role), maxRoleName); err != nil {
			return err
		}
	}
	return nil
}

func (d *DeviceUse) validate() error {
	return cmp.Or(
		notLonger("name", d.Name, maxPath), bytesOf(amount{"read_bytes", d.ReadBytes}, amount{"write_bytes", d.WriteBytes}),
		notNegative(amount{"read_ios", d.ReadIOs}, amount{"write_ios", d.WriteIOs}, amount{"busy", d.Busy}),
	)
}

func (g *GroupUse) validate() error {
	if g == nil {
		return nil
	}
	return within("group", bytesOf(amount{"read_bytes", g.ReadBytes}, amount{"write_bytes", g.WriteBytes}))
}

func (t *Transfer) validate() error {
	if t == nil {
		return nil
	}
	return within("outside", bytesOf(amount{"read", t.Read}, amount{"write", t.Write}))
}

// Validate says whether the place can be true.
func (p *Place) Validate() error {
	switch {
	case p.Target == "":
		return errors.New("a place without a target")
	case len(p.Mounts) > maxMounts:
		return fmt.Errorf("%d mounts: a place has at most %d", len(p.Mounts), maxMounts)
	case p.Direct != "" && p.Direct != DirectTaken && p.Direct != DirectRefused:
		return fmt.Errorf("direct %.40q: O_DIRECT is %s or %s", p.Direct, DirectTaken, DirectRefused)
	case p.Absent != "" && (len(p.Mounts) > 0 || p.HostType != "" || p.Device != "" || p.Direct != ""):
		return errors.New("a volume that is absent, and facts about it")
	}
	if err := cmp.Or(validateVolume(p.Volume), allNotLonger(text{"target", p.Target, maxLabel}, text{"host_type", p.HostType, maxLabel},
		text{"device", p.Device, maxPath}, text{"absent", p.Absent, maxCommand}, text{"advice", p.Advice, maxCommand})); err != nil {
		return err
	}
	for i := range p.Mounts {
		if err := p.Mounts[i].validate(); err != nil {
			return fmt.Errorf("mounts: %w", err)
		}
	}
	return nil
}

// validate takes sizes that no disk has: a file system is free to make them up,
// and some in sandboxes do.
func (f *FileSystem) validate() error {
	if !strings.HasPrefix(f.Path, "/") {
		return errors.New("a path begins at the root, with /")
	}
	return cmp.Or(
		allNotLonger(text{"path", f.Path, maxPath}, text{"type", f.Type, maxLabel}, text{"problem", f.Problem, maxCommand}),
		notNegative(amount{"size", f.Size}, amount{"free", f.Free}),
	)
}

// Validate says whether the ceiling can be true.
func (c *Ceiling) Validate() error {
	switch {
	case c.When != "before" && c.When != "after":
		return fmt.Errorf("when %.40q: a device is measured before or after the rounds", c.When)
	case c.Failure != nil && c.Failure.Kind == "":
		return errors.New("a failure without a kind")
	case c.Failure == nil && c.Read == 0 && c.Write == 0 && c.ReadIOPS == 0 && c.WriteIOPS == 0:
		return errors.New("a ceiling without figures, and no failure that would explain it")
	}
	return cmp.Or(
		validateVolume(c.Volume), allNotLonger(text{"device", c.Device, maxPath}, text{"command", c.Command, maxCommand}),
		figures(figure{"read", c.Read, maxRate}, figure{"write", c.Write, maxRate}, figure{"read_iops", c.ReadIOPS, maxRate},
			figure{"write_iops", c.WriteIOPS, maxRate}, figure{"seconds", c.Seconds, maxSeconds}),
	)
}

// figure is a value with its name in the record, and the most it can be.
type figure struct {
	name  string
	value float64
	most  float64
}

// figures refuses NaN too.
func figures(all ...figure) error {
	for _, f := range all {
		if !(f.value >= 0 && f.value <= f.most) {
			return fmt.Errorf("%s is %g and has to be from 0 to %g", f.name, f.value, f.most)
		}
	}
	return nil
}

// spans says whether the amounts can be times of one run, in ns.
func spans(amounts ...amount) error {
	for _, a := range amounts {
		if err := notNegative(a); err != nil {
			return err
		}
		if a.value > int64(longestSpan) {
			return fmt.Errorf("%s is %d ns, which is more than a year", a.name, a.value)
		}
	}
	return nil
}

// text is one with its name in the record, and how many bytes it may have.
type text struct {
	name, value string
	most        int
}

func allNotLonger(texts ...text) error {
	for _, t := range texts {
		if err := notLonger(t.name, t.value, t.most); err != nil {
			return err
		}
	}
	return nil
}

func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
